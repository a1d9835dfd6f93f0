"""The bodies of the methods of a study: waiting for suggestions, the loop of `optimize`, rows of trials."""
