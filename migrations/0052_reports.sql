-- What users reported to the administrators: an event, a room or a user.

CREATE TABLE report (
  report_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- event, room, user
  kind text COLLATE "C" NOT NULL,
  reporter_nid bigint NOT NULL,
  received_at bigint NOT NULL,
  reason text,
  -- Of an event; releases before 1.18.
  score integer,
  room_nid bigint,
  room_id text COLLATE "C",
  event_id text COLLATE "C",
  -- The sender of the event, or the user who was reported.
  target_user text COLLATE "C"
);
CREATE INDEX report_kind ON report (kind, report_nid);
CREATE INDEX report_reporter ON report (reporter_nid, report_nid);
CREATE INDEX report_age ON report (received_at);
