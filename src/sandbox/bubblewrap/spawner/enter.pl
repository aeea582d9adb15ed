# One program in the terminal that this process was started in.

sub enter {
  my ($probe, $pid, $started, $uid, $gid, $network, $owners, $cwd, $count, @rest) = @_;
  $is_ignoring_owners = $owners eq 'ignored';
  my @variables = splice @rest, 0, $count;
  close_from(3);
  write_file('/proc/self/oom_score_adj', OOM_SCORE);
  if ($uid ne '') {
    sys('setgroups', 0, 0) == 0 && sys('setresgid', ($gid + 0) x 3) == 0 && sys('setresuid', ($uid + 0) x 3) == 0
      or give_up(1, "cannot become user $uid: $!");
  }
  my ($pidfd, $seen) = open_process($pid + 0);
  give_up(1, 'the sandbox has ended') if !defined $pidfd || $seen ne $started;
  eval {
    sys('setns', $pidfd, CLONE_NEWUSER) == 0 or die "cannot enter its user namespace: $!\n";
    enter_namespaces($pidfd, $probe, $network eq 'host', sub { die "the sandbox is not whole\n" });
    1;
  } or give_up(1, "$@");
  give_up_for_ever();
  # The program leads a session of its own, with the terminal: in the same one, its signals to its group (kill 0) would
  # reach this process.
  $SIG{HUP} = 'IGNORE';
  ioctl STDIN, TIOCNOTTY, 0;
  my $child = fork // give_up(1, "no process: $!");
  if (!$child) {
    $SIG{HUP} = 'DEFAULT';
    sys('setsid');
    ioctl STDIN, TIOCSCTTY, 0;
    become($cwd, [], [], [], program(\@rest, \@variables));
  }
  # TERM asks for the program's end: were this process killed, nobody would bury the program.
  $SIG{HUP} = sub { kill HUP => $child };
  $SIG{TERM} = sub { kill KILL => $child };
  waitpid $child, 0;
  my $status = $?;
  leave($status & 127 ? 128 + ($status & 127) : $status >> 8);
}
