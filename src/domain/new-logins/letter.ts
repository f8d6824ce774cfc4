import type { Config } from '../../config/schema.ts'
import type { UserId } from '../../core/ids.ts'
import { oneLine, type TemplateValues } from '../../core/template.ts'
import type { NewLogin } from '../../store/accounts/new-logins.ts'
import { MAX_LETTER_NAME_CHARS, MAX_LOGINS_IN_LETTER } from '../limits/new-logins.ts'
import { publicBaseUrl } from '../public-address.ts'

/** What a letter about new logins says: each of the first ones, how many more there are, and where its reader ends them. */
export function letterValues(
  config: Pick<Config, 'public_base_url' | 'listen'>,
  userId: UserId,
  logins: readonly NewLogin[],
): TemplateValues {
  const more = logins.length - MAX_LOGINS_IN_LETTER
  return {
    user_id: userId,
    logins: logins.slice(0, MAX_LOGINS_IN_LETTER).map(({ device_id, device_name, ip, logged_in_at }) => ({
      name: nameOf(device_name ?? ''),
      device: oneLine(device_id),
      // The reader's time zone is not known.
      time: `${new Date(logged_in_at).toISOString().slice(0, 16).replace('T', ' ')} UTC`,
      ip: ip ?? '',
    })),
    more: more > 0 ? String(more) : '',
    link: `${publicBaseUrl(config)}/_hearth/account`,
  }
}

function nameOf(name: string): string {
  const characters = [...oneLine(name)]
  return characters.length > MAX_LETTER_NAME_CHARS
    ? `${characters.slice(0, MAX_LETTER_NAME_CHARS - 1).join('')}…`
    : characters.join('')
}
