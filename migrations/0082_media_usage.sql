-- What the files of each user of this server are and weigh, so that lists and quotas need not count them all. Triggers count, so that an older
-- release counts too.

CREATE TABLE media_usage (
  user_nid bigint PRIMARY KEY,
  -- Uploaded ones; names that wait for their upload do not count.
  files bigint NOT NULL,
  -- Content that several files share counts once for each.
  bytes bigint NOT NULL
);

CREATE FUNCTION count_media() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    -- In order, so that two who delete files of many users do not wait for each other.
    PERFORM FROM media_usage u WHERE user_nid IN (SELECT user_nid FROM gone) ORDER BY user_nid FOR UPDATE;
    UPDATE media_usage u SET files = u.files - g.files, bytes = u.bytes - g.bytes
    FROM (SELECT m.user_nid, count(*) AS files, sum(c.bytes) AS bytes FROM gone m JOIN media_content c USING (digest)
          WHERE m.user_nid IS NOT NULL GROUP BY m.user_nid) AS g
    WHERE u.user_nid = g.user_nid;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO media_usage AS u (user_nid, files, bytes)
    SELECT m.user_nid, count(*), sum(c.bytes) FROM fresh m JOIN media_content c USING (digest)
    WHERE m.user_nid IS NOT NULL GROUP BY m.user_nid ORDER BY m.user_nid
    ON CONFLICT (user_nid) DO UPDATE SET files = u.files + excluded.files, bytes = u.bytes + excluded.bytes;
  ELSE
    INSERT INTO media_usage AS u (user_nid, files, bytes)
    SELECT NEW.user_nid, 1, c.bytes FROM media_content c WHERE c.digest = NEW.digest
    ON CONFLICT (user_nid) DO UPDATE SET files = u.files + excluded.files, bytes = u.bytes + excluded.bytes;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER media_counted_in AFTER INSERT ON media REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION count_media();
-- A name that was reserved gets its file. No file gets another content.
CREATE TRIGGER media_counted_up AFTER UPDATE OF digest ON media FOR EACH ROW
  WHEN (NEW.user_nid IS NOT NULL AND OLD.digest IS NULL AND NEW.digest IS NOT NULL) EXECUTE FUNCTION count_media();
CREATE TRIGGER media_counted_out AFTER DELETE ON media REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION count_media();

INSERT INTO media_usage (user_nid, files, bytes)
SELECT m.user_nid, count(*), sum(c.bytes) FROM media m JOIN media_content c USING (digest)
WHERE m.user_nid IS NOT NULL GROUP BY m.user_nid;
