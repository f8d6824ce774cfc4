-- What ended or was taken back: sessions, devices, accounts, media, events, rooms. It is written beside the backups from time to time, so that
-- a restore can do it again. Triggers note it, so that no way of ending something is left out. Rows are kept for some weeks.

CREATE TABLE undone (
  undone_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- When its transaction began, in ms.
  at bigint NOT NULL,
  -- session, device, account, media, quarantine, event, purge, deletion
  kind text COLLATE "C" NOT NULL,
  -- JSON list: what it was, by numbers and names.
  what text NOT NULL
);
CREATE INDEX undone_at ON undone (at);

CREATE OR REPLACE FUNCTION note_undone() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  what json;
BEGIN
  IF TG_ARGV[0] = 'session' THEN
    what := json_build_array(OLD.token_nid, OLD.user_nid);
  ELSIF TG_ARGV[0] = 'device' THEN
    what := json_build_array(OLD.user_nid, OLD.device_id, OLD.created_at);
  ELSIF TG_ARGV[0] = 'account' THEN
    what := json_build_array(NEW.user_nid);
  ELSIF TG_ARGV[0] = 'media' THEN
    what := json_build_array(OLD.server_name, OLD.media_id, OLD.created_at);
  ELSIF TG_ARGV[0] = 'quarantine' THEN
    what := json_build_array(encode(NEW.digest, 'hex'));
  ELSIF TG_ARGV[0] = 'event' THEN
    what := json_build_array(NEW.event_nid, NEW.event_id);
  ELSIF TG_ARGV[0] = 'purge' THEN
    what := json_build_array(NEW.purge_id, NEW.room_nid, NEW.up_to_pos, NEW.up_to_nid, NEW.with_local);
  ELSIF TG_ARGV[0] = 'deletion' THEN
    what := json_build_array(NEW.deletion_id, NEW.room_id, NEW.request);
  END IF;
  INSERT INTO undone (at, kind, what) VALUES ((extract(epoch FROM now()) * 1000)::bigint, TG_ARGV[0], what::text);
  RETURN NULL;
END $$;

-- Tokens that expire are renewed all the time; they end by themselves.
CREATE TRIGGER session_undone AFTER DELETE ON access_token FOR EACH ROW
  WHEN (OLD.expires_at IS NULL) EXECUTE FUNCTION note_undone('session');
CREATE TRIGGER device_undone AFTER DELETE ON device FOR EACH ROW EXECUTE FUNCTION note_undone('device');
CREATE TRIGGER account_undone AFTER UPDATE OF password_hash, deactivated_at, erased_at, is_locked, is_suspended, is_admin ON account FOR EACH ROW
  WHEN (OLD.password_hash IS DISTINCT FROM NEW.password_hash OR OLD.deactivated_at IS DISTINCT FROM NEW.deactivated_at
    OR OLD.erased_at IS DISTINCT FROM NEW.erased_at OR OLD.is_locked <> NEW.is_locked OR OLD.is_suspended <> NEW.is_suspended
    OR OLD.is_admin <> NEW.is_admin)
  EXECUTE FUNCTION note_undone('account');
-- What was uploaded here: files of other servers come and go by themselves.
CREATE TRIGGER media_undone AFTER DELETE ON media FOR EACH ROW
  WHEN (OLD.user_nid IS NOT NULL AND OLD.digest IS NOT NULL) EXECUTE FUNCTION note_undone('media');
CREATE TRIGGER media_quarantined AFTER UPDATE OF quarantined_by ON media_content FOR EACH ROW
  WHEN (OLD.quarantined_by IS DISTINCT FROM NEW.quarantined_by) EXECUTE FUNCTION note_undone('quarantine');
CREATE TRIGGER event_undone AFTER UPDATE OF redacted_by ON event FOR EACH ROW
  WHEN (OLD.redacted_by IS NULL AND NEW.redacted_by IS NOT NULL) EXECUTE FUNCTION note_undone('event');
CREATE TRIGGER history_undone AFTER INSERT ON history_purge FOR EACH ROW EXECUTE FUNCTION note_undone('purge');
CREATE TRIGGER room_undone AFTER INSERT ON room_deletion FOR EACH ROW EXECUTE FUNCTION note_undone('deletion');
