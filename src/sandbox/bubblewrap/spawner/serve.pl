# The spawner.

# From the end of the driver until entry processes that hang are killed, and from then until what is left is given up.
use constant LEAVE_WAIT_S => 2;

sub serve {
  my ($folder, $bwrap, $probe) = @_;
  my $children = watch_children();
  # An entry process that is killed leaves its dead children to this process, which buries them.
  sys('prctl', PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  my %entries;
  my $received = '';
  while (1) {
    my ($request, $child) = wait_readable(undef, fileno STDIN, fileno $children);
    if ($child) {
      my $is_in_order = 1;
      for (buried_children($children)) {
        my ($pid, $status) = @$_;
        my $entry = delete $entries{$pid};
        answer("gone $entry->{number}") if defined $entry;
        $is_in_order = 0 if !defined $entry || $status != 0;
      }
      end_orphans(\%entries) if !$is_in_order;
    }
    if ($request) {
      my $count = sysread STDIN, $received, 65536, length $received;
      last if !$count;
      for (take_requests(\$received)) {
        my ($kind, @fields) = @$_;
        if ($kind eq 'pipes') { make_pipes($folder, @fields); next }
        my ($number) = @fields;
        my $spawner = $$;
        # Only this process holds its other end. In the entry process each child would have a copy until it executes, and one
        # that the agent has stopped would hold the sandbox when the entry process is gone.
        my $pid = pipe(my $block_out, my $block) ? fork : undef;
        if (!defined $pid) { answer("failed $number no process: $!") }
        elsif ($pid) { $entries{$pid} = {number => $number, block => $block} }
        else {
          %entries = ();
          close $block;
          keep($spawner, $children, $block_out, $folder, $bwrap, $probe, @fields);
          leave(1);
        }
      }
    }
  }
  # The driver is gone. The entry processes see it too, and end in order.
  my $until = now() + LEAVE_WAIT_S;
  while (%entries && now() < $until) {
    wait_readable($until - now(), fileno $children);
    delete $entries{$_->[0]} for buried_children($children);
  }
  kill KILL => keys %entries;
  %entries = ();
  $until = now() + LEAVE_WAIT_S;
  while (waitpid(-1, WNOHANG) >= 0 && now() < $until) {
    end_orphans(\%entries);
    select undef, undef, undef, LOOK_S;
  }
  leave(0);
}

# What an entry process has left that was killed. Of orphans' own children this process hears when those have ended.
sub end_orphans {
  my ($entries) = @_;
  opendir my $processes, '/proc' or return;
  for my $pid (grep { /^\d+$/ && !$entries->{$_} } readdir $processes) {
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
