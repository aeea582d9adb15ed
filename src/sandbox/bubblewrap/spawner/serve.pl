# The spawner.

# From the end of the keeper until porters that hang are killed.
use constant LEAVE_PATIENCE_S => 2;

sub serve {
  my ($folder, $bwrap, $probe) = @_;
  my $children = watch_children();
  # A porter that is killed leaves its dead children to this process, which buries them.
  sys('prctl', PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prepare_launches();
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
