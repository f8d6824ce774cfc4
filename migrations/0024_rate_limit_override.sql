-- Users whom an operator lets send more, or less, than others.
CREATE TABLE rate_limit_override (
  user_nid bigint PRIMARY KEY REFERENCES account,
  -- Events per second; 0: no limit of any kind applies.
  per_second double precision NOT NULL,
  burst integer NOT NULL
);
