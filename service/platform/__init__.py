"""What is no part of the problem: addresses, admission, disks, logs, repeated steps and traces."""
