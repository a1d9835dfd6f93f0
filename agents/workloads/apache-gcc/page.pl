#!/usr/bin/perl
# A CGI program: it prints a page with the number of bytes in its query string, real numbers on one line. They are
# random and new at each request, as in the published study.

use strict;
use warnings;

my $bytes = $ENV{QUERY_STRING} // '';
if ($bytes !~ /\A[1-9][0-9]{0,6}\z/) {
    print "Status: 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nhow many bytes?\n";
    exit;
}
my $page = '';
$page .= sprintf '%.8f ', rand while length $page < $bytes;
substr($page, $bytes - 1) = "\n";
print "Content-Type: text/plain\r\nContent-Length: $bytes\r\n\r\n$page";
