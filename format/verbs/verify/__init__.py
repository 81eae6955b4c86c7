"""verify: findings about damage."""
