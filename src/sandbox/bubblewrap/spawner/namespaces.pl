# Enters a sandbox, and gives up what its commands do not have.

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

# All but the user namespace, which comes before, and the network where commands choose. Root and working directory become
# the root of the mount namespace.
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

# What neither the entry process nor any child of it needs again. The entry process keeps its own powers: it executes no program.
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
