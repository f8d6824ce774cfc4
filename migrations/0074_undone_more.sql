-- More that a restore does again: shadow bans, approvals and ends of accounts; keys of users that were reset, backups of keys that were
-- deleted, rooms that were blocked or set free.

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
  ELSIF TG_ARGV[0] = 'cross_signing' THEN
    what := json_build_array(OLD.user_nid);
  ELSIF TG_ARGV[0] = 'key_backup' THEN
    what := json_build_array(OLD.user_nid, OLD.version);
  ELSIF TG_ARGV[0] = 'block' THEN
    what := json_build_array(coalesce(NEW.room_id, OLD.room_id));
  END IF;
  INSERT INTO undone (at, kind, what) VALUES ((extract(epoch FROM now()) * 1000)::bigint, TG_ARGV[0], what::text);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER account_undone AFTER UPDATE OF password_hash, deactivated_at, erased_at, is_locked, is_suspended, is_admin,
    is_shadow_banned, awaits_approval, valid_until ON account FOR EACH ROW
  WHEN (OLD.password_hash IS DISTINCT FROM NEW.password_hash OR OLD.deactivated_at IS DISTINCT FROM NEW.deactivated_at
    OR OLD.erased_at IS DISTINCT FROM NEW.erased_at OR OLD.is_locked <> NEW.is_locked OR OLD.is_suspended <> NEW.is_suspended
    OR OLD.is_admin <> NEW.is_admin OR OLD.is_shadow_banned <> NEW.is_shadow_banned OR OLD.awaits_approval <> NEW.awaits_approval
    OR OLD.valid_until IS DISTINCT FROM NEW.valid_until)
  EXECUTE FUNCTION note_undone('account');
-- A key is replaced by removing it first.
CREATE TRIGGER cross_signing_undone AFTER DELETE ON cross_signing_key FOR EACH ROW EXECUTE FUNCTION note_undone('cross_signing');
CREATE TRIGGER key_backup_undone AFTER DELETE ON key_backup FOR EACH ROW EXECUTE FUNCTION note_undone('key_backup');
CREATE TRIGGER blocked_undone AFTER INSERT OR DELETE ON blocked_room FOR EACH ROW EXECUTE FUNCTION note_undone('block');
