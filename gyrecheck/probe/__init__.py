"""Room for experiments on a run: bring-up, timing, reuse, perturbation."""
