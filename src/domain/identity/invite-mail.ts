import type { Config } from '../../config/schema.ts'
import { isRoomAlias, type RoomId, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { readMxc, writeMxc } from '../../core/mxc.ts'
import type { TemplateValues } from '../../core/template.ts'
import { identityBaseUrl } from '../public-address.ts'

/** A checked invitation. Its address is normalised. */
export interface InviteRequest {
  readonly address: string
  readonly roomId: RoomId
  readonly sender: UserId
  /** The other fields of the request, for the mail. */
  readonly details: JsonObject
}

export interface InviteSecrets {
  readonly token: string
  readonly privateKey: string
}

/** The longest text of a stranger in a mail of ours, in code points. */
const MAX_PERSON_CHARS = 20
const MAX_ROOM_CHARS = 30

/** A name that is safe in a mail: one line, short, and nothing that a mail program turns into a link. */
export function harmlessName(text: unknown, maxChars: number): string {
  if (typeof text !== 'string') return ''
  const line = text
    .slice(0, 1_000)
    .replace(/[\p{C}\s]+/gu, ' ')
    .replace(/\S*(?::\/\/|www\.)\S*/gi, '')
    .replace(/([\p{L}\p{N}])\.(?=\p{L})/gu, '$1 ')
    .replace(/ +/g, ' ')
    .trim()
  const letters = [...line]
  return letters.length <= maxChars
    ? line
    : `${letters
        .slice(0, maxChars - 1)
        .join('')
        .trimEnd()}…`
}

/** The values of the template `invite.mail`. */
export function inviteMailValues(
  config: Pick<Config, 'identity' | 'public_base_url' | 'listen'>,
  { address, roomId, sender, details }: InviteRequest,
  { token, privateKey }: InviteSecrets,
): TemplateValues {
  const alias = details.room_alias
  const senderName = harmlessName(details.sender_display_name, MAX_PERSON_CHARS)
  const roomName = harmlessName(details.room_name, MAX_ROOM_CHARS)
  const avatar = (value: unknown): string => {
    const mxc = readMxc(value)
    return mxc === undefined ? '' : writeMxc(mxc)
  }
  return {
    ...{ link: linkOf(), token, private_key: privateKey, server_name: serverOf(sender) },
    ...{ sender, sender_display_name: senderName, sender_avatar_url: avatar(details.sender_avatar_url) },
    ...{ room_id: roomId, room_name: roomName, room_avatar_url: avatar(details.room_avatar_url) },
    room_alias: isRoomAlias(alias) ? alias : '',
    room_join_rules: harmlessName(details.room_join_rules, MAX_ROOM_CHARS),
    is_space: details.room_type === 'm.space' ? 'true' : '',
  }

  /** A link to a client that signs for the invitation itself, for people who do not want to bind their address. */
  function linkOf(): string {
    // Version 1 needs no token, and a person who is only being invited has none.
    const generation = config.identity.v1_api.enabled ? 'api/v1' : 'v2'
    const sign = new URLSearchParams({ token, private_key: privateKey })
    const query = new URLSearchParams({
      email: address,
      signurl: `${identityBaseUrl(config)}/_matrix/identity/${generation}/sign-ed25519?${sign}`,
      room_name: roomName,
      inviter_name: senderName,
    })
    return `${config.identity.invites.client_url}${encodeURIComponent(roomId)}?${query}`
  }
}
