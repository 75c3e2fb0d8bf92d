"""What every engine on a GPU shares: driver, clock, limits of the chip, watchdog."""
