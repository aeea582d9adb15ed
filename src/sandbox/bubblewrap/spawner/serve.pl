# The spawner.

# From the end of the driver until porters that hang are killed, and from then until what is left is given up.
use constant LEAVE_PATIENCE_S => 2;

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
      my $is_in_order = 1;
      for (buried_children($children)) {
        my ($pid, $status) = @$_;
        my $porter = delete $porters{$pid};
        answer("gone $porter->{number}") if defined $porter;
        $is_in_order = 0 if !defined $porter || $status != 0;
      }
      end_orphans(\%porters) if !$is_in_order;
    }
    if ($request) {
      my $count = sysread STDIN, $received, 65536, length $received;
      last if !$count;
      for (take_requests(\$received)) {
        my ($kind, @fields) = @$_;
        if ($kind eq 'pipes') { make_pipes($folder, @fields); next }
        my ($number) = @fields;
        my $spawner = $$;
        # Only this process holds its other end. In the porter each child would have a copy until it executes, and one
        # that the agent has stopped would hold the sandbox when the porter is gone.
        my $pid = pipe(my $block_out, my $block) ? fork : undef;
        if (!defined $pid) { answer("failed $number no process: $!") }
        elsif ($pid) { $porters{$pid} = {number => $number, block => $block} }
        else {
          %porters = ();
          close $block;
          keep($spawner, $children, $block_out, $folder, $bwrap, $probe, @fields);
          leave(1);
        }
      }
    }
  }
  # The driver is gone. The porters see it too, and end in order.
  my $until = now() + LEAVE_PATIENCE_S;
  while (%porters && now() < $until) {
    wait_readable($until - now(), fileno $children);
    delete $porters{$_->[0]} for buried_children($children);
  }
  kill KILL => keys %porters;
  %porters = ();
  $until = now() + LEAVE_PATIENCE_S;
  while (waitpid(-1, WNOHANG) >= 0 && now() < $until) {
    end_orphans(\%porters);
    select undef, undef, undef, LOOK_S;
  }
  leave(0);
}

# What a porter has left that was killed. Of orphans' own children this process hears when those have ended.
sub end_orphans {
  my ($porters) = @_;
  opendir my $processes, '/proc' or return;
  for my $pid (grep { /^\d+$/ && !$porters->{$_} } readdir $processes) {
    my $stat = read_file("/proc/$pid/stat") // next;
    kill KILL => $pid if $stat =~ /.*\) \S (\d+) /s && $1 == $$;
  }
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
