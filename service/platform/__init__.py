"""Parts that serve any problem: addresses, admission, disks, logs, repeated steps and traces."""
