import { ROOM_VERSIONS } from '../../../core/room-version.ts'
import { delayedEventLimits } from '../../../domain/delayed-events/quota.ts'
import { endpoint } from '../../../http/endpoint.ts'

const AVAILABLE = Object.fromEntries(ROOM_VERSIONS.map(({ id }) => [id, 'stable']))

export const getCapabilities = endpoint(
  'GET C/capabilities',
  { auth: 'user', anywhere: true, guests: true, limited: 'other' },
  async ({ requester }, { admin, config }) => ({
    capabilities: {
      // A session that came from OAuth leaves these to the account page.
      'm.change_password': { enabled: !requester.isOauth },
      'm.3pid_changes': { enabled: !requester.isOauth },
      'm.get_login_token': { enabled: config.login_tokens.from_session && !requester.isOauth },
      'm.set_displayname': { enabled: true },
      'm.set_avatar_url': { enabled: true },
      'm.profile_fields': { enabled: true },
      ...((await admin.operators.isAdmin(requester)) && { 'm.account_moderation': { suspend: true, lock: true } }),
      'm.delayed_events': delayedEventLimits(config),
      'm.room_versions': { default: config.rooms.default_version, available: AVAILABLE },
    },
  }),
)
