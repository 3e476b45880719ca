"""The compiled floor: private, called by convcore.engine alone."""
