# An entry process, one per sandbox.

sub keep {
  my ($spawner, $children, $block_out, $folder, $bwrap, $probe, @fields) = @_;
  my ($number, $requests_name, $network, $owners, @setup) = @fields;
  $is_ignoring_owners = $owners eq 'ignored';
  $entry = $number;
  die_with_parent($spawner);
  sysopen my $nothing, '/dev/null', O_RDONLY or leave(1);
  dup_to(fileno $nothing, 0);
  sysopen my $requests, "$folder/$requests_name", O_RDONLY or fail("no pipe for requests: $!");
  unlink "$folder/$requests_name";
  $folder_fd = sys('openat', AT_FDCWD, $folder, O_RDONLY | O_CLOEXEC, 0);
  fail("no folder of pipes: $!") if $folder_fd < 0;
  # Opened by path, these belong to whoever opens them; after setns the paths would be the sandbox's.
  sysopen $oom_score, '/proc/self/oom_score_adj', O_WRONLY or fail("no OOM score: $!");

  my $layers = [splice @setup, 0, shift @setup];
  my ($point, $size, $changes) = splice @setup, 0, 3;
  my $upper = !@$layers ? '' : $changes eq '' ? "$point/upper" : "$changes/upper";
  my ($outer, $info, $said) = start_bwrap($bwrap, $block_out, $layers, $point, $size, $changes, @setup);
  my ($pid, $pidfd, $started) = eval { await_sandbox($info, $probe, $network eq 'host', $outer, $upper) };
  if (!defined $pidfd) {
    my $reason = "$@" =~ s/\n.*//sr;
    # What it says from here on is about the end that it is made to come to.
    my $words = last_words($said);
    # All of its group: what has just begun inside would else wait for the one outside for ever.
    kill KILL => -$outer, $outer;
    waitpid $outer, 0;
    fail(join ': ', grep { $_ ne '' } $reason, $words);
  }
  limit_files($size) if !@$layers;
  # Where all changes of files are: the root itself, or the upper folder of its overlay.
  $changes_fd //= sys('openat', AT_FDCWD, '/', O_RDONLY | O_CLOEXEC, 0);
  $network_fd = $pidfd if $network eq 'host';
  give_up_for_ever();
  die_with_parent($spawner);
  $nothing_fd = sys('openat', AT_FDCWD, '/dev/null', O_RDONLY | O_CLOEXEC, 0);
  answer("ready $entry $pid $started");

  my (%run_of, %pid_of, %kill_of);
  my $begin = sub {
    my ($run) = @_;
    $run->{started_s} = now();
    my $pid = start_command($run);
    if ($pid) { $run_of{$pid} = $run; $pid_of{$run->{id}} = $pid; return }
    # In a sandbox that ends no process can be made.
    answer("refused $entry $run->{id} " . ($! + 0)) if !is_ending();
    remove_pipes($run);
  };
  my $received = '';
  my $end = sub {
    sys('pidfd_send_signal', $pidfd, SIGKILL, 0, 0);
    # Process 1 does not end before every process of its namespace is buried, the commands by this one.
    my $is_over;
    until ($is_over) {
      (undef, $is_over) = wait_readable(undef, fileno $children, $pidfd);
      for (buried_children($children)) { undef $outer if $outer && $_->[0] == $outer }
    }
    # Last, because until here it buries process 1.
    kill KILL => $outer if $outer;
    1 while waitpid(-1, 0) > 0;
    remove_pipes($_) for values %run_of;
    answer("gone $entry");
    leave(0);
  };
  while (1) {
    my ($request, $child, $is_over) = wait_readable(undef, fileno $requests, fileno $children, $pidfd);
    $end->() if $is_over;
    if ($child) {
      for (buried_children($children)) {
        my ($pid, $status) = @$_;
        if (my $run = delete $run_of{$pid}) {
          delete $pid_of{$run->{id}};
          remove_pipes($run);
          # The death of a sandbox kills its commands first. That is no end of a command.
          my $ms = sprintf '%.3f', 1_000 * (now() - $run->{started_s});
          answer("ended $entry $run->{id} $pid $status $ms") unless ($status & 127) == SIGKILL && is_ending();
        } elsif (defined(my $kill = delete $kill_of{$pid})) {
          answer("killed $entry $kill $status");
        } elsif ($outer && $pid == $outer) {
          undef $outer;
        }
      }
    }
    if ($request) {
      my $count = sysread $requests, $received, 65536, length $received;
      $end->() if !$count;
      for (take_requests(\$received)) {
        my ($kind, $id, @fields) = @$_;
        if ($kind eq 'run') {
          $begin->(read_run($id, @fields));
        } elsif ($kind eq 'tell') {
          my $pid = $pid_of{$id} // next;
          answer("told $entry $id $pid");
        } else {
          my $pid = fork;
          if (!defined $pid) { answer("killed $entry $id -1") if !is_ending() }
          elsif ($pid) { $kill_of{$pid} = $id }
          else { kill_everything() }
        }
      }
    }
  }
}
