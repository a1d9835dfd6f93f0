"""`trimtab-service doctor`: checks of a deployment. Each says what is wrong and how to repair it."""
