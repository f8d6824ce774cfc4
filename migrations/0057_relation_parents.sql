-- Relations of relations: a recursive search follows only the events that have relations themselves. And pages of all types have an index.

-- Whether any event ever related to the child.
ALTER TABLE event_relation ADD COLUMN has_children boolean NOT NULL DEFAULT false;

UPDATE event_relation r SET has_children = true FROM (SELECT DISTINCT room_nid, target_id FROM event_relation) AS target
WHERE r.room_nid = target.room_nid AND r.child_id = target.target_id;

CREATE INDEX event_relation_pos ON event_relation (room_nid, target_id, pos);
CREATE INDEX event_relation_parent ON event_relation (room_nid, target_id) WHERE has_children;
-- A child is found by its own place when something relates to it for the first time.
CREATE INDEX event_relation_place ON event_relation (room_nid, pos);
