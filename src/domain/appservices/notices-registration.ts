import type { Config } from '../../config/schema.ts'
import { compileExpression, escapeExpression } from '../../core/appservice/expression.ts'
import type { Registration } from '../../core/appservice/registration.ts'
import { userId } from '../../core/ids.ts'
import type { Random } from '../clock.ts'

/** The service in this process that owns the user of server notices. */
export const NOTICES_SERVICE = 'hearth.server_notices'

/**
 * Its registration: the user of `server_notices.localpart` is its own, and it asks for no events. Undefined if server notices are off.
 */
export function noticesRegistration(
  { server_notices: { localpart }, server_name }: Pick<Config, 'server_notices' | 'server_name'>,
  random: Random,
): readonly Registration[] {
  if (localpart === undefined) return []
  const regex = `${escapeExpression(userId(localpart, server_name))}$`
  const token = () => random.bytes(32).toString('base64url')
  return [
    {
      id: NOTICES_SERVICE,
      url: null,
      // Nobody knows this token, because only this process calls the service.
      as_token: token(),
      hs_token: token(),
      sender_localpart: localpart,
      namespaces: {
        users: [{ regex, exclusive: true, expression: compileExpression(regex, undefined) }],
        aliases: [],
        rooms: [],
      },
      rate_limited: false,
      protocols: [],
      receive_ephemeral: false,
      receive_device_data: false,
    },
  ]
}
