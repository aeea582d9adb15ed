# System calls, which perl makes by number, and the constants they take.

# Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
my %NUMBERS = (
  x64 => {
    AUDIT_ARCH => 0xC000003E, chown => 92, fchown => 93, lchown => 94, fchownat => 260,
    capset => 126, clock_gettime => 228, close_range => 436, dup3 => 292, execve => 59, exit_group => 231, fchdir => 81,
    fcntl => 72, kill => 62, mknodat => 259, mount => 165, openat => 257, pidfd_open => 434, pidfd_send_signal => 424,
    prctl => 157,
    prlimit64 => 302, rt_sigprocmask => 14, setgroups => 116, setns => 308, setresgid => 119, setresuid => 117,
    setsid => 112, signalfd4 => 289, unlinkat => 263, unshare => 272,
  },
  arm64 => {
    AUDIT_ARCH => 0xC00000B7, fchown => 55, fchownat => 54,
    capset => 91, clock_gettime => 113, close_range => 436, dup3 => 24, execve => 221, exit_group => 94, fchdir => 50,
    fcntl => 25, kill => 129, mknodat => 33, mount => 40, openat => 56, pidfd_open => 434, pidfd_send_signal => 424,
    prctl => 167,
    prlimit64 => 261, rt_sigprocmask => 135, setgroups => 159, setns => 268, setresgid => 149, setresuid => 147,
    setsid => 157, signalfd4 => 74, unlinkat => 35, unshare => 97,
  },
);
my $NUMBER = $NUMBERS{$machine} // die "no system call numbers for $machine\n";
# For the start of a command, which calls the kernel directly.
my ($SETSID, $CLOSE_RANGE, $OPENAT, $UNLINKAT, $FCNTL, $DUP3) =
  @$NUMBER{qw(setsid close_range openat unlinkat fcntl dup3)};
my ($PRLIMIT, $CAPSET, $SIGPROCMASK, $EXECVE) = @$NUMBER{qw(prlimit64 capset rt_sigprocmask execve)};
die "a perl of 32 bits cannot call a kernel of 64\n" if length pack('p', '') != 8;

# asm-generic/fcntl.h; the same on both machines.
use constant { O_RDONLY => 0, O_WRONLY => 1, O_NONBLOCK => 04000, O_CLOEXEC => 02000000 };
use constant { AT_FDCWD => -100, F_DUPFD => 0, F_SETFL => 4, S_IFIFO => 0010000 };
# linux/sched.h; the last is a flag of a process that has begun to end.
use constant {
  CLONE_NEWNS => 0x00020000, CLONE_NEWCGROUP => 0x02000000, CLONE_NEWUTS => 0x04000000, CLONE_NEWIPC => 0x08000000,
  CLONE_NEWUSER => 0x10000000, CLONE_NEWPID => 0x20000000, CLONE_NEWNET => 0x40000000, PF_EXITING => 0x4,
};
use constant { MS_NOSUID => 1 << 1, MS_NODEV => 1 << 2, MS_REMOUNT => 1 << 5, MS_REC => 1 << 14, MS_PRIVATE => 1 << 18 };
use constant { TIOCSCTTY => 0x540e, TIOCNOTTY => 0x5422 };
# linux/prctl.h
use constant {
  PR_SET_PDEATHSIG => 1, PR_SET_DUMPABLE => 4, PR_CAPBSET_DROP => 24, PR_SET_CHILD_SUBREAPER => 36,
  PR_SET_SECCOMP => 22, SECCOMP_MODE_FILTER => 2, PR_SET_NO_NEW_PRIVS => 38, PR_CAP_AMBIENT => 47,
  PR_CAP_AMBIENT_CLEAR_ALL => 4,
};
use constant { RLIMIT_DATA => 2, RLIMIT_CORE => 4, RLIMIT_NPROC => 6, SIGCHLD => 17, SIGKILL => 9 };
# sys/wait.h; the last is what the status of a child that has stopped ends with.
use constant { WNOHANG => 1, STOPPED => 0x7f };
use constant { SIG_BLOCK => 0, SIG_SETMASK => 2, CLOCK_MONOTONIC => 1 };

my $NO_SIGNALS = "\0" x 8;
# Between two looks at a bwrap that is mounting, which takes some ms.
use constant LOOK_S => 0.0002;

sub sys {
  my ($name, @arguments) = @_;
  return syscall $NUMBER->{$name}, @arguments;
}

# Seconds on a clock that nobody sets.
sub now {
  my $time = "\0" x 16;
  syscall $NUMBER->{clock_gettime}, CLOCK_MONOTONIC, $time;
  my ($seconds, $nanoseconds) = unpack 'qq', $time;
  return $seconds + $nanoseconds / 1e9;
}

sub leave { sys('exit_group', $_[0]) }

# What execve(2) takes: a path, and words and variables as arrays of pointers into these lists, which have to stay.
sub program {
  my ($words, $variables) = @_;
  return ("$words->[0]", pack('p*', @$words) . "\0" x 8, pack('p*', @$variables) . "\0" x 8);
}

sub dup_to {
  my ($fd, $number) = @_;
  sys('dup3', $fd, $number, 0) if $fd != $number;
}

sub close_from { sys('close_range', $_[0] + 0, 0xffffffff, 0) }

# @returns for each descriptor whether there is something to read; nothing when time ran out
sub wait_readable {
  my ($seconds, @descriptors) = @_;
  my $set = '';
  vec($set, $_, 1) = 1 for @descriptors;
  $seconds = 0 if defined $seconds && $seconds < 0;
  return if select($set, undef, undef, $seconds) <= 0;
  return map { vec $set, $_, 1 } @descriptors;
}

# @returns what is readable when a child has ended
sub watch_children {
  my $set = pack 'Q', 1 << (SIGCHLD - 1);
  sys('rt_sigprocmask', SIG_BLOCK, $set, 0, 8);
  my $fd = sys('signalfd4', -1, $set, 8, O_CLOEXEC | O_NONBLOCK);
  open my $children, '<&=', $fd or die "no descriptor for signals: $!\n";
  return $children;
}

# @returns pid and status of each child that has ended since the last call
sub buried_children {
  my ($children) = @_;
  sysread $children, my $ignored, 4096;
  my @buried;
  while ((my $pid = waitpid -1, WNOHANG) > 0) {
    # A child that has made this process its tracer (PTRACE_TRACEME) is told of also when it stops, which is 0 in $?.
    push @buried, [$pid, $?] if (${^CHILD_ERROR_NATIVE} & 0xff) != STOPPED;
  }
  return @buried;
}

sub die_with_parent {
  my ($parent) = @_;
  sys('prctl', PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  leave(1) if getppid() != $parent;
}

sub read_file {
  my ($path) = @_;
  sysopen my $file, $path, O_RDONLY or return undef;
  sysread $file, my $text, 4096;
  return $text // '';
}

sub write_file {
  my ($path, $text) = @_;
  sysopen my $file, $path, O_WRONLY or return 0;
  return syswrite $file, $text;
}

sub write_all {
  my ($handle, $bytes) = @_;
  while (length $bytes) {
    my $count = syswrite $handle, $bytes or return;
    substr($bytes, 0, $count) = '';
  }
}
