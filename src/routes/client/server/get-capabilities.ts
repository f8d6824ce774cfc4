import { ROOM_VERSIONS } from '../../../core/room-version.ts'
import { endpoint } from '../../../http/endpoint.ts'

const AVAILABLE = Object.fromEntries(ROOM_VERSIONS.map(({ id }) => [id, 'stable']))

export const getCapabilities = endpoint(
  'GET C/capabilities',
  { auth: 'user', guests: true, limited: 'other' },
  async ({ requester }, { admin, config }) => ({
    capabilities: {
      'm.change_password': { enabled: true },
      'm.3pid_changes': { enabled: true },
      'm.get_login_token': { enabled: config.login_tokens.from_session },
      'm.set_displayname': { enabled: true },
      'm.set_avatar_url': { enabled: true },
      'm.profile_fields': { enabled: true },
      ...((await admin.operators.isAdmin(requester)) && { 'm.account_moderation': { suspend: true, lock: true } }),
      'm.room_versions': { default: config.rooms.default_version, available: AVAILABLE },
    },
  }),
)
