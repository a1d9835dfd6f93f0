"""Records of tuned applications, and the record that a submitted job resembles most."""
