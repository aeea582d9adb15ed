# Starts sandboxes and lets commands into them.
#
# In Perl: Node can call neither fork(2) nor setns(2), a compiled helper would need a compiler or a binary for every
# machine, and in a chain of shell tools (prlimit, nsenter, setpriv, chroot, sh) each program costs as much as the
# command itself. Debian and Ubuntu have perl-base on every machine; nothing beyond it is used.
#
# Three kinds of processes:
#   the spawner, one per keeper, is small, so that its forks are cheap; it makes named pipes and starts porters;
#   a porter, one per sandbox, starts bwrap, enters all namespaces of it, and forks a child for each command. Only these
#     children are inside the pid namespace: no command can see, signal or trace a porter. When it ends, by whatever,
#     the pipe that bwrap waits on closes, and with bwrap ends everything inside;
#   a child, one per command, gives up all powers that commands do not have, and becomes the command.
#
# What must always hold:
#   no program is executed between setns and the loss of the powers, so nothing the agent wrote, preloaded libraries
#     least of all, ever runs with them; and after setns perl loads no file (@INC is empty);
#   a command inherits three descriptors and nothing else of ours.
#
# A request is its length and then its fields, each after its own length (all in 4 bytes, big-endian). An answer is a
# line, written at once, so that lines of several processes never mix.
#
#   serve MACHINE FOLDER BWRAP PROBE          the spawner; the folder holds the named pipes
#   enter MACHINE PROBE PID STARTED UID GID NETWORK OWNERS CWD COUNT VARIABLE… WORD…   one program in a terminal, as a
#                                           child of this
#
# MACHINE is Node's name for the architecture. PROBE is a path that exists only in a finished sandbox.
use strict;
use warnings;
@INC = ();

# Else the whole text of this program would be seen inside as the command line of a child that is about to execute.
$0 = 't1';

my ($mode, $machine, @arguments) = @ARGV;

# Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
my %NUMBERS = (
  x64 => {
    AUDIT_ARCH => 0xC000003E, chown => 92, fchown => 93, lchown => 94, fchownat => 260,
    capset => 126, clock_gettime => 228, close_range => 436, dup3 => 292, execve => 59, exit_group => 231,
    fchdir => 81, fcntl => 72, kill => 62, mknodat => 259, mount => 165, openat => 257, pidfd_open => 434, pidfd_send_signal => 424, prctl => 157,
    prlimit64 => 302, rt_sigprocmask => 14, setgroups => 116, setns => 308, setresgid => 119, setresuid => 117,
    setsid => 112, signalfd4 => 289, unlinkat => 263, unshare => 272,
  },
  arm64 => {
    AUDIT_ARCH => 0xC00000B7, fchown => 55, fchownat => 54,
    capset => 91, clock_gettime => 113, close_range => 436, dup3 => 24, execve => 221, exit_group => 94, fchdir => 50, fcntl => 25, kill => 129,
    mknodat => 33, mount => 40, openat => 56, pidfd_open => 434, pidfd_send_signal => 424, prctl => 167,
    prlimit64 => 261, rt_sigprocmask => 135, setgroups => 159, setns => 268, setresgid => 149, setresuid => 147,
    setsid => 157, signalfd4 => 74, unlinkat => 35, unshare => 97,
  },
);
my $NUMBER = $NUMBERS{$machine} // die "no system call numbers for $machine\n";
# For a child on its way to its program, which calls the kernel directly (start_command).
my ($SETSID, $OPENAT, $FCNTL, $UNLINKAT, $DUP3, $CLOSE_RANGE, $PRLIMIT, $CAPSET, $SIGPROCMASK, $EXECVE) =
  @$NUMBER{qw(setsid openat fcntl unlinkat dup3 close_range prlimit64 capset rt_sigprocmask execve)};
# add_key, request_key and keyctl, by every way into the kernel (AUDIT_ARCH of linux/audit.h): the machine's own, its
# programs of 32 bits, and x32, whose numbers are those of x64 and a bit.
my %KEY_CALLS = (
  x64 => {0xC000003E => [248 .. 250, 0x40000000 + 248 .. 0x40000000 + 250], 0x40000003 => [286 .. 288]},
  arm64 => {0xC00000B7 => [217 .. 219], 0x40000028 => [309 .. 311]},
);
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
  PR_SET_SECCOMP => 22, SECCOMP_MODE_FILTER => 2, PR_SET_NO_NEW_PRIVS => 38, PR_CAP_AMBIENT => 47, PR_CAP_AMBIENT_CLEAR_ALL => 4,
};
use constant { RLIMIT_DATA => 2, RLIMIT_CORE => 4, RLIMIT_NPROC => 6, SIGCHLD => 17, SIGKILL => 9, WNOHANG => 1 };
use constant { SIG_BLOCK => 0, SIG_SETMASK => 2, CLOCK_MONOTONIC => 1 };

# Capabilities that a command keeps in its own user namespace: Docker's default set without those that reach beyond the
# files and processes of a sandbox (mknod, net_raw, setpcap, setfcap, audit_write): chown, dac_override, fowner, fsetid,
# kill, setgid, setuid, net_bind_service, sys_chroot, as numbered in linux/capability.h.
# Source: https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities
my @KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10, 18);

# Processes and threads of one sandbox together (counted per user namespace since Linux 5.14).
use constant PROCESS_LIMIT => 2048;
# Memory of one process that it alone can write: enough for compilers and language runtimes, and one that never stops to
# allocate ends with an error of its own. All together are bounded by the machine, whose killer takes commands first.
use constant MEMORY_LIMIT => 4 << 30;
# Of files there is room for one per this many bytes of a sandbox: each takes memory of the kernel, empty or not.
use constant { BYTES_PER_FILE => 1024, FEWEST_FILES => 16384 };
# A command is killed first when the machine runs out of memory, so that the driver stays. 0 is neutral, 1000 the most.
use constant OOM_SCORE => 500;

use constant START_PATIENCE_S => 30;
# Between two looks at a bwrap that is mounting, which takes some ms.
use constant LOOK_S => 0.0002;
# For what bwrap said before it gave up to arrive.
use constant LAST_WORDS_S => 0.02;
# From the end of the keeper until porters that hang are killed.
use constant LEAVE_PATIENCE_S => 2;
# Looks for survivors after a kill of everything: a killed process takes a moment until it is gone.
use constant KILL_LOOKS => 40;

# As a shell has it: not found, and found but of no use.
use constant { NOT_FOUND => 127, NOT_USABLE => 126 };
use constant { ENOENT => 2, EEXIST => 17, ENOSYS => 38, ENOTEMPTY => 39 };

my $NO_SIGNALS = "\0" x 8;

# Of programs that run outside. Variables of a task must not reach them.
my @HOST_VARIABLES = ('PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C');

umask 022;
# Not ignored, which programs would inherit; perl itself ignores the second.
$SIG{$_} = sub { } for qw(PIPE FPE);
if ($mode eq 'serve') { serve(@arguments) } else { enter(@arguments) }

# --- the spawner

sub serve {
  my ($folder, $bwrap, $probe) = @_;
  my $children = watch_children();
  # A porter that is killed leaves its dead children to this process, which buries them.
  sys('prctl', PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  my %porters;
  my $received = '';
  while (1) {
    my ($request, $child) = wait_readable(undef, fileno STDIN, fileno $children);
    if ($child) {
      for (buried_children($children)) {
        my $porter = delete $porters{$_->[0]};
        answer("gone $porter") if defined $porter;
      }
    }
    if ($request) {
      my $count = sysread STDIN, $received, 65536, length $received;
      last if !$count;
      for (take_requests(\$received)) {
        my ($kind, @fields) = @$_;
        if ($kind eq 'pipes') { make_pipes($folder, @fields); next }
        my ($porter) = @fields;
        my $spawner = $$;
        my $pid = fork;
        if (!defined $pid) { answer("failed $porter no process: $!") }
        elsif ($pid) { $porters{$pid} = $porter }
        else { keep($spawner, $children, $folder, $bwrap, $probe, @fields); leave(1) }
      }
    }
  }
  # The keeper is gone. The porters see it too, and end in order.
  my $until = now() + LEAVE_PATIENCE_S;
  while (%porters && now() < $until) {
    wait_readable($until - now(), fileno $children);
    delete $porters{$_->[0]} for buried_children($children);
  }
  kill KILL => keys %porters;
  leave(0);
}

# Pipes that commands open again by name (`echo no > /dev/stderr`), which the sockets that Node gives to a child are not.
sub make_pipes {
  my ($folder, $first, $count) = @_;
  my $errno = 0;
  for my $name ($first .. $first + $count - 1) {
    $errno = $! + 0 if sys('mknodat', AT_FDCWD, "$folder/$name", S_IFIFO | 0600, 0) < 0;
  }
  answer("piped $first $errno");
}

# --- a porter

my ($porter, $block, $folder_fd, $nothing_fd, $changes_fd, $stat, $oom_score);
# For the system calls of become: which process, what it may do, and its limits.
my ($this_process, $kept_capabilities, $process_limit, $memory_limit);
# Of a sandbox whose commands may have this machine's network: its process 1, by which the others enter their own.
my $network_fd;
# Whether giving a file to another user is accepted without effect, rather than refused (ignore_owners).
my $is_ignoring_owners = 0;

sub keep {
  my ($spawner, $children, $folder, $bwrap, $probe, $number, $requests_name, $network, $owners, @setup) = @_;
  $is_ignoring_owners = $owners eq 'ignored';
  $porter = $number;
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
  my ($outer, $info, $said) = start_bwrap($bwrap, $layers, $point, $size, $changes, @setup);
  my ($pid, $pidfd, $started) = eval { await_sandbox($info, $probe, $network eq 'host', $outer, $upper) };
  if (!defined $pidfd) {
    my $reason = "$@" =~ s/\n.*//sr;
    # What it says from here on is about the end that it is made to come to.
    my $words = last_words($said);
    kill KILL => $outer;
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
  answer("ready $porter $pid $started");

  my (%id_of, %pid_of, %kill_of);
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
    answer("gone $porter");
    leave(0);
  };
  while (1) {
    my ($request, $child, $is_over) = wait_readable(undef, fileno $requests, fileno $children, $pidfd);
    $end->() if $is_over;
    if ($child) {
      for (buried_children($children)) {
        my ($pid, $status) = @$_;
        if (defined(my $id = delete $id_of{$pid})) {
          delete $pid_of{$id};
          # The death of a sandbox kills its commands first. That is no end of a command.
          answer("ended $porter $id $pid $status") unless ($status & 127) == SIGKILL && is_ending();
        } elsif (defined(my $kill = delete $kill_of{$pid})) {
          answer("killed $porter $kill $status");
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
          my $pid = start_command($id, @fields);
          if ($pid) { $id_of{$pid} = $id; $pid_of{$id} = $pid }
          # In a sandbox that ends no process can be made.
          elsif (!is_ending()) { answer("refused $porter $id " . ($! + 0)) }
        } elsif ($kind eq 'tell') {
          answer("told $porter $id $pid_of{$id}") if defined $pid_of{$id};
        } else {
          my $pid = fork;
          if (!defined $pid) { answer("killed $porter $id -1") if !is_ending() }
          elsif ($pid) { $kill_of{$pid} = $id }
          else { kill_everything() }
        }
      }
    }
  }
}

# Process 1 of a sandbox is bwrap itself, stopped right before it would run a program: it waits for a byte that never
# comes. Nothing inside can end it (a pid namespace protects its first process), and children that lost their parents
# are reaped because it ignores SIGCHLD. When the porter dies, even by SIGKILL, the wait ends, bwrap finds no program to
# run and exits, and the kernel ends everything inside. Nothing can be left over.
sub start_bwrap {
  my ($bwrap, $layers, $point, $size, $changes, @rest) = @_;
  my @files = splice @rest, 0, shift @rest;
  pipe my $arguments_out, my $arguments or fail("no pipe: $!");
  pipe my $info, my $info_in or fail("no pipe: $!");
  pipe my $block_out, $block or fail("no pipe: $!");
  pipe my $said, my $said_in or fail("no pipe: $!");
  my $pid = fork // fail("no process: $!");
  if (!$pid) {
    # A group of its own: an interrupt from the keyboard is for the driver, which then ends its sandboxes in order.
    sys('setsid');
    # Above all numbers that bwrap is told, so that none is overwritten before it is moved.
    my @given = map { sys('fcntl', fileno $_, F_DUPFD, 200) } $arguments_out, $info_in, $block_out;
    for my $file (@files) {
      my $fd = sys('openat', AT_FDCWD, $file, O_RDONLY, 0);
      give_up(NOT_USABLE, "cannot read $file: $!") if $fd < 0;
      push @given, sys('fcntl', $fd, F_DUPFD, 200);
    }
    dup_to(fileno $said_in, 2);
    dup_to(0, 1);
    dup_to($given[$_], 3 + $_) for 0 .. $#given;
    close_from(3 + @given);
    chdir '/';
    mount_overlay($point, $size, $changes, @$layers) if @$layers;
    sys('rt_sigprocmask', SIG_SETMASK, $NO_SIGNALS, 0, 8);
    $SIG{CHLD} = 'IGNORE';
    # bwrap would else be seen inside with all of its arguments, as /proc/1/cmdline.
    my @words = ($bwrap, '--args', '3', '--info-fd', '4', '--block-fd', '5', '/nonexistent');
    sys('execve', program(\@words, \@HOST_VARIABLES));
    give_up(NOT_USABLE, "cannot run $bwrap: $!");
  }
  close $_ for $arguments_out, $info_in, $block_out, $said_in;
  write_all($arguments, join '', map { "$_\0" } @rest);
  close $arguments;
  return ($pid, $info, $said);
}

# An overlay in a mount namespace of its own takes all changes, so neither the image nor the mounts of this machine are
# ever touched. They go into memory, or into a folder on disk whose user keeps them. The overlay is told of folders by
# links in the tmpfs, because in its options a path with a comma or colon would be something else, and all of them may be
# no longer than a page (mount(2)). `userxattr` is what a user namespace may use (overlayfs, Linux 5.11).
sub mount_overlay {
  my ($point, $size, $changes, @layers) = @_;
  my ($uid, $gid) = ($< + 0, (split / /, $()[0] + 0);
  sys('unshare', CLONE_NEWUSER | CLONE_NEWNS) == 0 or give_up(1, "cannot make a user namespace: $!");
  for ([setgroups => 'deny'], [uid_map => "0 $uid 1"], [gid_map => "0 $gid 1"]) {
    my ($name, $text) = @$_;
    write_file("/proc/self/$name", $text) or give_up(1, "cannot write $name: $!");
  }
  my $mount = sub {
    my ($source, $target, $type, $flags, $options) = @_;
    sys('mount', $source, $target, $type, $flags, $options) == 0 or give_up(1, "cannot mount $type at $target: $!");
  };
  $mount->('none', '/', '', MS_REC | MS_PRIVATE, '');
  $mount->('tmpfs', $point, 'tmpfs', 0, "size=$size,mode=0755,nr_inodes=" . file_limit($size));
  chdir $point or give_up(1, "cannot enter $point: $!");
  mkdir 'root', 0755;
  for my $name ('upper', 'work') {
    $changes eq '' ? mkdir $name, 0755 : symlink "$changes/$name", $name or give_up(1, "cannot make $name: $!");
  }
  symlink $layers[$_], $_ or give_up(1, "cannot make a link: $!") for 0 .. $#layers;
  my $lower = join ':', 0 .. $#layers;
  $mount->('overlay', "$point/root", 'overlay', 0, "userxattr,lowerdir=$lower,upperdir=upper,workdir=work");
  chdir '/';
}

sub file_limit {
  my ($size) = @_;
  my $count = int($size / BYTES_PER_FILE);
  return $count < FEWEST_FILES ? FEWEST_FILES : $count;
}

# bwrap has no option for it. With all powers inside, which this process still has.
sub limit_files {
  my ($size) = @_;
  sys('mount', 'none', '/', '', MS_REMOUNT | MS_NOSUID | MS_NODEV, 'nr_inodes=' . file_limit($size)) == 0
    or fail("cannot limit the number of files: $!");
}

# Enters the sandbox as soon as bwrap has finished it. @returns pid of its process 1, a descriptor of that process, and
# when it started
sub await_sandbox {
  my ($info, $probe, $keeps_network, $outer, $upper) = @_;
  my $until = now() + START_PATIENCE_S;
  my $look_again = sub {
    die "bwrap was not ready in time\n" if now() > $until;
    select undef, undef, undef, LOOK_S;
  };
  my $text = '';
  # bwrap(1), --info-fd: JSON over several lines.
  until ($text =~ /\}/) {
    die "bwrap was not ready in time\n" if !wait_readable($until - now(), fileno $info);
    sysread $info, $text, 4096, length $text or die "bwrap ended at once\n";
  }
  my $pid = ($text =~ /"child-pid": *(\d+)/)[0] + 0;
  close $info;
  my ($pidfd, $started) = open_process($pid) or die "bwrap ended while it was starting\n";
  if ($upper ne '') {
    # While this process may still look into the one that mounted the overlay; inside it cannot be seen.
    $changes_fd = sys('openat', AT_FDCWD, "/proc/$outer/root$upper", O_RDONLY | O_CLOEXEC, 0);
    die "cannot open the folder of changes: $!\n" if $changes_fd < 0;
  }
  # Before the id map is written nobody in the user namespace is root, and the kernel refuses what comes next.
  $look_again->() until (read_file("/proc/$pid/uid_map") // die "bwrap ended while it was starting\n") ne '';
  sys('setns', $pidfd, CLONE_NEWUSER) == 0 or die "cannot enter its user namespace: $!\n";
  # In a user namespace of its own a command would have every capability again, and with it most of the kernel to try.
  # The limit is per namespace, and only powers that commands lack can raise it (namespaces(7), /proc/sys/user).
  write_file('/proc/sys/user/max_user_namespaces', '0') or die "cannot forbid user namespaces: $!\n";
  # It appears below the root of process 1 when bwrap has changed to it.
  until (-e "/proc/$pid/root$probe") {
    die "bwrap ended while it was mounting\n" if is_ending();
    $look_again->();
  }
  enter_namespaces($pidfd, $probe, $keeps_network, $look_again);
  return ($pid, $pidfd, $started);
}

# @returns a descriptor of the process and when it started; nothing when it is gone. The descriptor stands for this
# process for ever, whatever process gets its number.
sub open_process {
  my ($pid) = @_;
  my $pidfd = sys('pidfd_open', $pid, 0);
  return if $pidfd < 0;
  sysopen $stat, "/proc/$pid/stat", O_RDONLY or return;
  my @fields = stat_fields();
  return if !@fields || $fields[0] =~ /[ZX]/;
  return ($pidfd, $fields[19]);
}

# All but the user namespace, which comes before, and the network where commands choose. Root and working directory become the root of the mount namespace.
sub enter_namespaces {
  my ($pidfd, $probe, $keeps_network, $look_again) = @_;
  my $others = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  $others |= CLONE_NEWNET if !$keeps_network;
  sys('setns', $pidfd, $others) == 0 or die "cannot enter its namespaces: $!\n";
  # For a moment after bwrap has changed its root, the old one still lies over the new one.
  until (-e $probe) {
    $look_again->();
    sys('setns', $pidfd, CLONE_NEWNS) == 0 or die "cannot enter its files: $!\n";
  }
}

# proc_pid_stat(5) from its field 3 on; nothing when the process is gone.
sub stat_fields {
  sysseek $stat, 0, 0;
  sysread $stat, my $text, 4096 or return;
  return split / /, substr $text, rindex($text, ')') + 2;
}

sub is_ending {
  my @fields = stat_fields();
  return !@fields || $fields[0] =~ /[ZX]/ || ($fields[6] & PF_EXITING) != 0;
}

# What neither the porter nor any child of it needs again. The porter keeps its own powers: it executes no program.
sub give_up_for_ever {
  my %kept = map { $_ => 1 } @KEPT_CAPABILITIES;
  for my $capability (0 .. 63) {
    next if $kept{$capability};
    last if sys('prctl', PR_CAPBSET_DROP, $capability, 0, 0, 0) < 0;
  }
  sys('prctl', PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  sys('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 or leave(1);
  # Nobody inside may look into a child that has not executed its program yet, nor trace it.
  sys('prctl', PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 or leave(1);
  sys('prlimit64', 0, RLIMIT_CORE, pack('QQ', 0, 0), 0);
  my $current = "\0" x 16;
  syscall $NUMBER->{prlimit64}, 0, RLIMIT_NPROC, 0, $current;
  my (undef, $most) = unpack 'QQ', $current;
  my $limit = $most < PROCESS_LIMIT ? $most : PROCESS_LIMIT;
  $process_limit = pack 'QQ', $limit, $limit;
  $memory_limit = pack 'QQ', MEMORY_LIMIT, MEMORY_LIMIT;
  # capset(2): version 3, this process; effective, permitted, inheritable, in two words of 32 bits
  my $mask = 0;
  $mask |= 1 << $_ for @KEPT_CAPABILITIES;
  ($this_process, $kept_capabilities) = (pack('Ll', 0x20080522, 0), pack('L6', $mask, $mask, 0, 0, 0, 0));
  refuse_keys();
  ignore_owners() if $is_ignoring_owners;
}

# @returns pid of the child; undef with $! set when there is none
sub start_command {
  my ($id, $input, $output, $errors, $network, $cwd, @rest) = @_;
  my @removed = splice @rest, 0, shift @rest;
  my @made = splice @rest, 0, shift @rest;
  my @emptied = splice @rest, 0, shift @rest;
  my @variables = splice @rest, 0, shift @rest;
  # Of each page that the child writes, the kernel makes a copy first, and in perl every call of a sub and every list
  # writes some. So all that can be is done before the fork, and on its way the child calls the kernel directly.
  my @program = program(\@rest, \@variables);
  # The child could not write its own score: to /proc a process that must not be looked into is the machine's root.
  syswrite $oom_score, OOM_SCORE;
  my $pid = fork;
  if (!defined $pid || $pid) {
    my $errno = $! + 0;
    syswrite $oom_score, '0';
    $! = $errno;
    return $pid;
  }
  # While `block` is open here, the sandbox does not end with the porter: nothing may wait until become has closed it.
  syscall $SETSID;
  my $input_fd = $input eq '' ? $nothing_fd : open_pipe($id, $input, O_RDONLY);
  my $output_fd = open_pipe($id, $output, O_WRONLY);
  my $errors_fd = open_pipe($id, $errors, O_WRONLY);
  syscall $DUP3, $input_fd, 0, 0;
  syscall $DUP3, $output_fd, 1, 0;
  syscall $DUP3, $errors_fd, 2, 0;
  if (defined $network_fd && $network ne 'host') {
    sys('setns', $network_fd, CLONE_NEWNET) == 0 or give_up(NOT_USABLE, "cannot leave this machine's network: $!");
  }
  # No path: the folder of changes.
  if ($cwd eq '') { sys('fchdir', $changes_fd) == 0 or give_up(NOT_USABLE, "no folder of changes: $!") }
  become($cwd, \@removed, \@made, \@emptied, @program);
}

# Without waiting for the other end, which may be gone: the writer after it has written all, a reader with the keeper.
sub open_pipe {
  my ($id, $name, $access) = @_;
  my $fd = syscall $OPENAT, $folder_fd, $name, $access | O_NONBLOCK, 0;
  if ($fd < 0) {
    answer("refused $porter $id " . ($! + 0));
    leave(1);
  }
  syscall $FCNTL, $fd, F_SETFL, 0;
  syscall $UNLINKAT, $folder_fd, $name, 0;
  return $fd;
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

# From here on, giving a file to somebody else succeeds and does nothing. One user is mapped, so it cannot be done; but
# package managers and tar stop at an error, and in a sandbox in which everybody is root nothing depends on it.
sub ignore_owners {
  answer_calls(0, $NUMBER->{AUDIT_ARCH} => [grep { defined } @$NUMBER{'chown', 'fchown', 'lchown', 'fchownat'}]);
}

# From here on the kernel has no keys. They are of the machine's user and not of a namespace: /proc/keys would show the
# names of those of other sandboxes, and whoever lets others read a key hands it over.
sub refuse_keys { answer_calls(ENOSYS, %{$KEY_CALLS{$machine}}) }

# Filters as in linux/bpf_common.h (load a word, jump if equal, return) over struct seccomp_data of linux/seccomp.h.
sub answer_calls {
  use constant { LOAD => 0x20, JUMP_EQUAL => 0x15, RETURN => 0x06, AT_NUMBER => 0, AT_ARCH => 4 };
  use constant { SECCOMP_RET_ERRNO => 0x00050000, SECCOMP_RET_ALLOW => 0x7fff0000 };
  my ($error, %calls_of) = @_;
  my @steps;
  for my $arch (sort keys %calls_of) {
    my @calls = @{$calls_of{$arch}};
    push @steps, [LOAD, 0, 0, AT_ARCH], [JUMP_EQUAL, 0, @calls + 3, $arch], [LOAD, 0, 0, AT_NUMBER];
    push @steps, [JUMP_EQUAL, @calls - $_, 0, $calls[$_]] for 0 .. $#calls;
    push @steps, [RETURN, 0, 0, SECCOMP_RET_ALLOW], [RETURN, 0, 0, SECCOMP_RET_ERRNO | $error];
  }
  push @steps, [RETURN, 0, 0, SECCOMP_RET_ALLOW];
  my $filter = join '', map { pack 'SCCL', @$_ } @steps;
  my $program = pack 'S x6 P', scalar @steps, $filter;
  sys('prctl', PR_SET_SECCOMP, SECCOMP_MODE_FILTER, $program, 0, 0) == 0
    or give_up(NOT_USABLE, "cannot filter system calls: $!");
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

# --- folders, in a child inside the sandbox

# Makes a folder and those above it, and goes there. What is no folder is in the way, unless it may be replaced.
sub make_folder {
  my ($path, $is_replacing) = @_;
  chdir '/';
  for my $name (names_of($path)) {
    next if chdir $name;
    unlink $name if $is_replacing;
    mkdir $name, 0755 or $! == EEXIST or give_up(1, "cannot make $path: $!");
    chdir $name or give_up(1, "cannot enter $path: $!");
  }
}

# Puts a fresh folder in the place of whatever is there: a link is replaced, not followed.
sub empty_folder {
  my ($path) = @_;
  my ($last, @above) = reverse names_of($path);
  give_up(1, 'cannot empty the root') if !defined $last;
  make_folder(join('/', reverse @above), 1);
  if (lstat $last && -d _) {
    chdir $last or give_up(1, "cannot enter $path: $!");
    empty_here($path);
    chdir '..' or give_up(1, "cannot leave $path: $!");
    rmdir $last or give_up(1, "cannot replace $path: $!");
  } elsif (-e _ || -l _) {
    unlink $last or give_up(1, "cannot replace $path: $!");
  }
  mkdir $last, 0755 or give_up(1, "cannot make $path: $!");
}

# What is there, with all it holds. Something that is gone already, or a mount, stays as it is.
sub remove_path {
  my ($path) = @_;
  my ($last, @above) = reverse names_of($path);
  chdir '/';
  for my $name (reverse @above) { return if -l $name || !chdir $name }
  return if !defined $last || unlink $last || !lstat $last || !-d _ || rmdir $last || !chdir $last;
  empty_here($path);
  rmdir $last if chdir '..';
}

# Step by step and without a path, because a tree may be deeper than any path is long.
sub empty_here {
  my ($path) = @_;
  my $depth = 0;
  while (1) {
    my $full = remove_entries($path);
    if (defined $full) {
      chdir $full or give_up(1, "cannot empty $path: $!");
      $depth++;
    } elsif ($depth > 0) {
      chdir '..' or give_up(1, "cannot empty $path: $!");
      $depth--;
    } else {
      return;
    }
  }
}

# @returns the name of a folder that has to be emptied first, undef when nothing is left
sub remove_entries {
  my ($path) = @_;
  opendir my $entries, '.' or give_up(1, "cannot empty $path: $!");
  while (defined(my $name = readdir $entries)) {
    next if $name eq '.' || $name eq '..' || unlink $name;
    my $reason = "$!";
    next if !lstat $name;
    give_up(1, "cannot empty $path: $reason") if !-d _;
    next if rmdir $name;
    # Anything else would be the same after it was emptied: a mount, for one.
    give_up(1, "cannot empty $path: $!") if $! != ENOTEMPTY && $! != EEXIST;
    return $name;
  }
  return undef;
}

sub names_of {
  my ($path) = @_;
  return grep { $_ ne '' && $_ ne '.' } split m{/}, $path;
}

# --- one program in the terminal that this process was started in

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

# --- small things

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

# For what a command's caller reads: the reason, and an exit code.
sub give_up {
  my ($code, $reason) = @_;
  syswrite STDERR, "sh: $reason\n";
  leave($code);
}

# For what the keeper reads.
sub fail {
  my ($reason) = @_;
  answer("failed $porter $reason");
  leave(1);
}

sub answer {
  my ($text) = @_;
  syswrite STDOUT, substr($text =~ s/\s+/ /gr, 0, 3000) . "\n";
}

# What execve(2) takes: a path, and words and variables as arrays of pointers into these lists, which have to stay.
sub program {
  my ($words, $variables) = @_;
  return ("$words->[0]", pack('p*', @$words) . "\0" x 8, pack('p*', @$variables) . "\0" x 8);
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
  while ((my $pid = waitpid -1, WNOHANG) > 0) { push @buried, [$pid, $?] }
  return @buried;
}

sub die_with_parent {
  my ($parent) = @_;
  sys('prctl', PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  leave(1) if getppid() != $parent;
}

# @returns for each descriptor whether there is something to read; nothing when time ran out
sub wait_readable {
  my ($seconds, @descriptors) = @_;
  my $set = '';
  vec($set, $_, 1) = 1 for @descriptors;
  $seconds = 0 if defined $seconds && $seconds < 0;
  return if select($set, undef, undef, $seconds) <= 0;
  return map { vec $set, $_, 1 } @descriptors;
}

sub take_requests {
  my ($received) = @_;
  my @requests;
  while (length $$received >= 4) {
    my $length = unpack 'N', $$received;
    last if length $$received < 4 + $length;
    push @requests, [unpack '(N/a*)*', substr $$received, 4, $length];
    substr($$received, 0, 4 + $length) = '';
  }
  return @requests;
}

sub last_words {
  my ($said) = @_;
  my $text = '';
  my $until = now() + LAST_WORDS_S;
  while (wait_readable($until - now(), fileno $said)) { sysread $said, $text, 2000, length $text or last }
  return $text;
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

sub dup_to {
  my ($fd, $number) = @_;
  sys('dup3', $fd, $number, 0) if $fd != $number;
}

sub close_from { sys('close_range', $_[0] + 0, 0xffffffff, 0) }
