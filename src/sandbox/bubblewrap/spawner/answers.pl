# What is said to the driver, and to the caller of a command that cannot start; and what the driver asks.

# As a shell has it: not found, and found but of no use.
use constant { NOT_FOUND => 127, NOT_USABLE => 126 };
use constant { ENOENT => 2, EEXIST => 17, EMFILE => 24, ENOSYS => 38, ENOTEMPTY => 39 };

# For what a command's caller reads: the reason, and an exit code.
sub give_up {
  my ($code, $reason) = @_;
  syswrite STDERR, "sh: $reason\n";
  leave($code);
}

# For what the driver reads.
sub fail {
  my ($reason) = @_;
  answer("failed $entry $reason");
  leave(1);
}

sub answer {
  my ($text) = @_;
  syswrite STDOUT, substr($text =~ s/\s+/ /gr, 0, 3000) . "\n";
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
