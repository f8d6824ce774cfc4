-- Which events relate to which (m.relates_to), so that replies, edits and references are found by the event that they relate to.

CREATE TABLE event_relation (
  room_nid bigint NOT NULL,
  -- The event that others relate to. It may come later, or never.
  target_id text COLLATE "C" NOT NULL,
  rel_type text COLLATE "C" NOT NULL,
  -- The event that relates: its place in the room's timeline, and what readers choose by. A redaction removes the row.
  pos bigint NOT NULL,
  child_nid bigint NOT NULL,
  child_id text COLLATE "C" NOT NULL,
  child_type text COLLATE "C" NOT NULL,
  sender text COLLATE "C" NOT NULL,
  ts bigint NOT NULL,
  -- Of an annotation.
  key text COLLATE "C",
  -- Whether it has what an edit needs of its own (m.replace).
  is_edit boolean NOT NULL,
  PRIMARY KEY (room_nid, target_id, rel_type, pos)
);
CREATE INDEX event_relation_sender ON event_relation (room_nid, target_id, sender, rel_type, ts);

-- Threads by their newest reply. A thread whose replies were all redacted has no newest one.
CREATE TABLE thread (
  room_nid bigint NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  latest_pos bigint,
  replies integer NOT NULL,
  PRIMARY KEY (room_nid, root_id)
);
CREATE INDEX thread_latest ON thread (room_nid, latest_pos) WHERE latest_pos IS NOT NULL;

-- Whether an event ever had relations: others are read without a look at event_relation.
ALTER TABLE event ADD COLUMN has_relations boolean NOT NULL DEFAULT false;

-- The events that are there already. A text with a NUL cannot be taken out of JSON.
WITH found AS MATERIALIZED (
  SELECT room_nid, room_pos, event_nid, event_id, type, key_id, origin_server_ts, json::json AS pdu FROM event
  WHERE room_pos IS NOT NULL AND redacted_by IS NULL AND json LIKE '%"m.relates_to":{%' AND json NOT LIKE '%\\u0000%'
), related AS MATERIALIZED (
  SELECT found.*, pdu #> '{content,m.relates_to}' AS relation FROM found
  WHERE json_typeof(pdu #> '{content,m.relates_to,event_id}') = 'string'
    AND json_typeof(pdu #> '{content,m.relates_to,rel_type}') = 'string'
)
INSERT INTO event_relation (room_nid, target_id, rel_type, pos, child_nid, child_id, child_type, sender, ts, key, is_edit)
SELECT room_nid, relation ->> 'event_id', relation ->> 'rel_type', room_pos, event_nid, event_id, type, pdu ->> 'sender', origin_server_ts,
  CASE WHEN relation ->> 'rel_type' = 'm.annotation' AND json_typeof(relation -> 'key') = 'string' THEN left(relation ->> 'key', 500) END,
  relation ->> 'rel_type' = 'm.replace' AND key_id IS NULL
    AND (type = 'm.room.encrypted' OR coalesce(json_typeof(pdu #> '{content,m.new_content}') = 'object', false))
FROM related WHERE length(relation ->> 'rel_type') BETWEEN 1 AND 255 AND relation ->> 'event_id' LIKE '$%' AND length(relation ->> 'event_id') <= 255;

UPDATE event SET has_relations = true FROM (SELECT DISTINCT room_nid, target_id FROM event_relation) target
WHERE event.event_id = target.target_id AND event.room_nid = target.room_nid;

INSERT INTO thread (room_nid, root_id, latest_pos, replies)
SELECT room_nid, target_id, max(pos), count(*) FROM event_relation WHERE rel_type = 'm.thread' GROUP BY room_nid, target_id;
