# Commands: a child of the entry process each.

# A command is killed first when the machine runs out of memory, so that the driver stays. 0 is neutral, 1000 the most.
use constant OOM_SCORE => 500;

# Looks for survivors after a kill of everything: a killed process takes a moment until it is gone.
use constant KILL_LOOKS => 40;

sub read_run {
  my ($id, $input, $output, $errors, $network, $cwd, @rest) = @_;
  my %run = (id => $id, pipes => [$input, $output, $errors], cwd => $cwd);
  $run{leaves_network} = defined $network_fd && $network ne 'host';
  $run{$_} = [splice @rest, 0, shift @rest] for qw(removed made emptied variables);
  $run{words} = \@rest;
  # Of each page that a forked child writes, the kernel makes a copy first, and in perl every call of a sub and every
  # list writes some. So all that can be is done before, and on its way the child calls the kernel directly.
  $run{program} = [program($run{words}, $run{variables})];
  return \%run;
}

# @returns pid of the child; undef with $! set when there is none
sub start_command {
  my ($run) = @_;
  my ($id, $cwd) = @$run{'id', 'cwd'};
  my ($input, $output, $errors) = @{$run->{pipes}};
  # The child takes the score with it. It could not write its own, since to /proc a process that must not be looked into
  # is the machine's root.
  syswrite $oom_score, OOM_SCORE;
  my $pid = fork;
  if (!defined $pid || $pid) {
    my $error = $!;
    syswrite $oom_score, '0';
    $! = $error;
    return $pid;
  }
  syscall $SETSID;
  my $input_fd = $input eq '' ? $nothing_fd : open_pipe($id, $input, O_RDONLY);
  my $output_fd = open_pipe($id, $output, O_WRONLY);
  my $errors_fd = open_pipe($id, $errors, O_WRONLY);
  # It fails when somebody inside has lowered the limit meanwhile; what was there before is not for commands.
  syscall($DUP3, $input_fd, 0, 0) == 0 or leave(NOT_USABLE);
  syscall($DUP3, $output_fd, 1, 0) == 1 or leave(NOT_USABLE);
  syscall($DUP3, $errors_fd, 2, 0) == 2 or leave(NOT_USABLE);
  if ($run->{leaves_network}) {
    sys('setns', $network_fd, CLONE_NEWNET) == 0 or give_up(NOT_USABLE, "cannot leave this machine's network: $!");
  }
  # No path: the folder of changes.
  if ($cwd eq '') { sys('fchdir', $changes_fd) == 0 or give_up(NOT_USABLE, "no folder of changes: $!") }
  become($cwd, @$run{qw(removed made emptied)}, @{$run->{program}});
}

# Without waiting for the other end, which may be gone: the writer after it has written all, a reader with the driver.
sub open_pipe {
  my ($id, $name, $access) = @_;
  my $fd = syscall $OPENAT, $folder_fd, $name, $access | O_NONBLOCK, 0;
  if ($fd < 0) {
    # Too many for this process alone: somebody inside has lowered its limit (prlimit(2)), and the machine lacks nothing.
    leave(NOT_USABLE) if $! == EMFILE;
    answer("refused $entry $id " . ($! + 0));
    leave(1);
  }
  syscall $FCNTL, $fd, F_SETFL, 0;
  return $fd;
}

sub remove_pipes {
  my ($run) = @_;
  for my $name (@{$run->{pipes}}) { syscall $UNLINKAT, $folder_fd, $name, 0 if $name ne '' }
}

# In a child inside the sandbox: the command, with its descriptors 0 to 2 in place. Never returns.
sub become {
  my ($cwd, $removed, $made, $emptied, $path, $words, $variables) = @_;
  syscall $CLOSE_RANGE, 3, 0xffffffff, 0;
  syscall $PRLIMIT, 0, RLIMIT_NPROC, $process_limit, 0;
  syscall $PRLIMIT, 0, RLIMIT_DATA, $memory_limit, 0;
  # Before the first path of the agent's is followed.
  syscall($CAPSET, $this_process, $kept_capabilities) == 0 or leave(NOT_USABLE);
  remove_path($_) for @$removed;
  empty_folder($_) for @$emptied;
  make_folder($_, 0) for @$made;
  $cwd eq '' or chdir $cwd or give_up(NOT_USABLE, "cannot change to $cwd: $!");
  syscall $SIGPROCMASK, SIG_SETMASK, $NO_SIGNALS, 0, 8;
  syscall $EXECVE, $path, $words, $variables;
  give_up($! == ENOENT ? NOT_FOUND : NOT_USABLE, "$path: $!");
}

# kill(2) of all at once, so that none can fork out of it; then it looks whether anybody is there. Ends with 0 when
# nobody is, and with 1 when somebody is.
sub kill_everything {
  # The parent of a process in a pid namespace of its own has no number in it. Else this would kill all that this user has.
  leave(1) if getppid() != 0;
  for (1 .. KILL_LOOKS) {
    sys('kill', -1, SIGKILL);
    leave(0) if sys('kill', -1, 0) < 0;
    select undef, undef, undef, LOOK_S;
  }
  leave(1);
}
