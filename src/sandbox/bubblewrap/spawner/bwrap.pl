# Starts bwrap, and waits until its sandbox is whole.

# Of files there is room for one per this many bytes of a sandbox: each takes memory of the kernel, empty or not.
use constant { BYTES_PER_FILE => 1024, FEWEST_FILES => 16384 };

use constant START_WAIT_S => 30;
# For what bwrap said before it gave up to arrive.
use constant LAST_WORDS_S => 0.02;

# Of programs that run outside. Variables of a task must not reach them.
my @HOST_VARIABLES = ('PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C');

# Process 1 of a sandbox is bwrap itself, stopped right before it would run a program: it waits for a byte that never
# comes. Nothing inside can end it (a pid namespace protects its first process), and children that lost their parents
# are reaped because it ignores SIGCHLD. When entry process or spawner die, even by SIGKILL, the wait ends, bwrap finds no
# program to run and exits, and the kernel ends everything inside. Nothing is left over but, of one that was starting, a
# bwrap inside that waits for the word of the one outside (serve).
sub start_bwrap {
  my ($bwrap, $block_out, $layers, $point, $size, $changes, @rest) = @_;
  my @files = splice @rest, 0, shift @rest;
  pipe my $arguments_out, my $arguments or fail("no pipe: $!");
  pipe my $info, my $info_in or fail("no pipe: $!");
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
  my $until = now() + START_WAIT_S;
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

sub last_words {
  my ($said) = @_;
  my $text = '';
  my $until = now() + LAST_WORDS_S;
  while (wait_readable($until - now(), fileno $said)) { sysread $said, $text, 2000, length $text or last }
  return $text;
}
