"""PPO on CartPole-v1 as two programs that meet only in a run folder: the loop that gyrecheck is proved on."""
