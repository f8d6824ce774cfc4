-- The event graph: events of other servers, among them those that are known without being part of the timeline.

-- NULL for events that no client is shown: outliers, rejected and soft-failed ones.
-- An event with missing history before it stands 2^20 places after the one before, so that the history finds room.
ALTER TABLE event ALTER COLUMN room_pos DROP NOT NULL;
-- NULL: accepted. 'soft-failed': allowed where it stands, but not by the room's state when it came.
-- 'rejected': against the rules. 'outlier': known as part of others' auth chains, its place in the room is not.
ALTER TABLE event ADD COLUMN standing text COLLATE "C";
-- Why it was rejected or soft-failed: rule and clause.
ALTER TABLE event ADD COLUMN reason text;
-- Its place in its writer's stream where that is not its number: others were numbered while it was checked, or it was an outlier first.
ALTER TABLE event ADD COLUMN stream_pos bigint;
CREATE INDEX event_stream_pos ON event (stream_pos) WHERE stream_pos IS NOT NULL;
-- The room's current state after this event was taken in, where that is not the state after the event itself.
ALTER TABLE event ADD COLUMN current_chain integer;
ALTER TABLE event ADD COLUMN current_seq integer;
-- Of a redacted event what the rules of authorisation read, where redaction takes some of that away.
ALTER TABLE event ADD COLUMN auth_content text;
-- The auth events of a state event; those it cites have smaller numbers. NULL on all others, and on those that were rejected from the first.
ALTER TABLE event ADD COLUMN auth_nids bigint[];
CREATE INDEX event_auth ON event (room_nid) WHERE auth_nids IS NOT NULL;

-- How many of the extremities, from the first on, the current state resolves, where not all: an event may build on so many only.
ALTER TABLE room ADD COLUMN merged integer;

-- Where in the stream the membership came to be, when that is not its event's number: where branches meet, an old event may decide anew.
ALTER TABLE room_member ADD COLUMN changed_at bigint;

-- Events that ours refer to as `prev_events` and that we do not have.
CREATE TABLE event_gap (
  room_nid bigint NOT NULL,
  missing_id text COLLATE "C" NOT NULL,
  event_nid bigint NOT NULL,
  PRIMARY KEY (room_nid, missing_id, event_nid)
);

-- Redactions whose target has not come yet.
CREATE TABLE early_redaction (
  room_nid bigint NOT NULL,
  target_id text COLLATE "C" NOT NULL,
  redaction_nid bigint NOT NULL,
  PRIMARY KEY (room_nid, target_id, redaction_nid)
);
