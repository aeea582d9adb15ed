# Commands whose child is no copy of its porter.
#
# Most of a short command's cost would be the copy of the porter that fork makes: the kernel copies its page tables, then
# page after page as one of the two writes, and throws all away for the program. A launched child shares the memory of the
# porter until it executes its program, and so must run nothing of perl: it runs a list of system calls that lies ready,
# by a few instructions of its own. Both go on at once: a child that waits for its parent (vfork) could be stopped by the
# agent, and the porter with it.
#
# For x86-64 only: elsewhere the return of a system call is not on the stack, and commands are forked.
my %LAUNCHERS = (
  x64 => pack('H*', join '',
    '488d5c2410',  #        lea rbx, [rsp + 16]     the first call
    '488b03',      # call:  mov rax, [rbx]
    '488b7b08',    #        mov rdi, [rbx + 8]
    '488b7310',    #        mov rsi, [rbx + 16]
    '488b5318',    #        mov rdx, [rbx + 24]
    '4c8b5320',    #        mov r10, [rbx + 32]
    '0f05',        #        syscall
    '4885c0',      #        test rax, rax
    '7806',        #        js failed
    '4883c328',    #        add rbx, 40             the next
    'ebe0',        #        jmp call
    '48890424',    # failed: mov [rsp], rax
    'bf7f000000',  #        mov edi, 127
    'b8e7000000',  #        mov eax, 231            exit_group
    '0f05',        #        syscall
  ),
);
use constant { LAUNCH_TRIAL => 42, PAGE => 4096, PROT_READ => 1, PROT_EXEC => 4, MAP_PRIVATE => 2, MFD_CLOEXEC => 1 };
use constant { CLONE_VM => 0x100, CLONE_CHILD_CLEARTID => 0x200000, CLONE_CLEAR_SIGHAND => 1 << 32 };

# Before any porter, which all have it from here. Where a kernel or its policy does not allow it, commands are forked.
sub prepare_launches {
  my $instructions = $LAUNCHERS{$machine} // return;
  my $fd = sys('memfd_create', 't1', MFD_CLOEXEC);
  return if $fd < 0;
  open my $file, '+<&=', $fd or return;
  syswrite $file, $instructions;
  my $address = sys('mmap', 0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, $fd, 0);
  return if $address == -1;
  $launcher = $address;
  # Should this perl's syscall return in another way, it finds nothing but zeros, and the child dies of that.
  my $trial = {};
  my $pid = launch($trial, $NUMBER->{exit_group}, LAUNCH_TRIAL, (0) x 64);
  return if defined $pid && waitpid($pid, 0) == $pid && $? == LAUNCH_TRIAL << 8;
  undef $launcher;
  sys('munmap', $address, PAGE);
}

# @returns as start_command
sub launch_command {
  my ($run) = @_;
  my $pipes = $run->{pipes};
  my ($path, $words, $variables) = map { address($_) } @{$run->{program}};
  my @calls = ($SETSID, 0, 0, 0, 0);
  push @calls, $DUP3, $nothing_fd, 0, 0, 0 if $pipes->[0] eq '';
  for my $fd (0 .. 2) {
    next if $pipes->[$fd] eq '';
    my $access = $fd == 0 ? O_RDONLY : O_WRONLY;
    # It gets the lowest number that is free.
    push @calls, $CLOSE, $fd, 0, 0, 0, $OPENAT, $folder_fd, address($pipes->[$fd]), $access | O_NONBLOCK, 0;
    push @calls, $FCNTL, $fd, F_SETFL, 0, 0;
  }
  push @calls, $SETNS, $network_fd, CLONE_NEWNET, 0, 0 if $run->{leaves_network};
  push @calls, $FCHDIR, $changes_fd, 0, 0, 0 if $run->{cwd} eq '';
  push @calls, $CLOSE_RANGE, 3, 0xffffffff, 0, 0;
  push @calls, $PRLIMIT, 0, RLIMIT_NPROC, address($process_limit), 0;
  push @calls, $PRLIMIT, 0, RLIMIT_DATA, address($memory_limit), 0;
  push @calls, $CAPSET, address($this_process), address($kept_capabilities), 0, 0;
  push @calls, $CHDIR, address($run->{cwd}), 0, 0, 0 if $run->{cwd} ne '';
  push @calls, $SIGPROCMASK, SIG_SETMASK, address($NO_SIGNALS), 0, 8;
  push @calls, $EXECVE, $path, $words, $variables, 0;
  be_first_to_die();
  return launch($run, @calls);
}

# Memory of a launch, in words of 8 bytes: the bottom of its stack; where its instructions are, to which the system call
# that makes the child returns, because that lies on the stack; what the call that failed said; whether the memory is
# still used, which the kernel sets to 0; and the calls, each a number and four arguments.
use constant { STACK => 8, FAILED => 16, USED => 24 };

# @returns as start_command; the memory lies in the run, which must be kept until the child has ended
sub launch {
  my ($run, @calls) = @_;
  $run->{memory} = pack 'Q*', 0, $launcher, 0, 1, @calls;
  my $start = address($run->{memory});
  # struct clone_args of linux/sched.h
  my @arguments = (CLONE_VM | CLONE_CLEAR_SIGHAND | CLONE_CHILD_CLEARTID, 0, $start + USED, 0, SIGCHLD, $start, STACK, 0);
  my $pid = sys('clone3', pack('Q*', @arguments), 8 * @arguments);
  return $pid < 0 ? undef : $pid;
}

sub is_launching { defined $_[0]{memory} && unpack('x' . USED . 'L', $_[0]{memory}) != 0 }

# Nothing was executed then.
sub has_failed { defined $_[0]{memory} && unpack('x' . FAILED . 'q', delete $_[0]{memory}) != 0 }
