-- Rooms whose moderation policies this server enforces.

CREATE TABLE policy_list (
  room_id text COLLATE "C" PRIMARY KEY,
  added_by text COLLATE "C" NOT NULL,
  added_at bigint NOT NULL
);
