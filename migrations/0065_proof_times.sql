-- Whoever signs in at another service with a token of this server: when they proved there who they are. NULL: not known.

ALTER TABLE login_token ADD COLUMN proven_at bigint;
