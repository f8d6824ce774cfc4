import { createHash } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import { preferredLanguages } from '../../core/languages.ts'
import type { Purpose } from '../../domain/contact/contact-sessions.ts'
import type { AddressWish } from '../../domain/contact/identity-server.ts'
import { networkOf } from '../../domain/network.ts'
import type { Services } from '../../domain/services.ts'
import type { FallbackStage, Fields, Sender } from './fallback-stage.ts'
import { escapeHtml } from './page.ts'

/** Nobody but who has the session of the authentication knows it, and the page need not carry it. */
const clientSecretOf = (session: string): string =>
  createHash('sha256').update(`fallback ${session}`).digest('base64url')

const purposeOf = (operation: string): Purpose => (operation.startsWith('POST C/register') ? 'register' : 'password')

const credsIn = ({ sid = '', session = '' }: Fields) => ({
  threepid_creds: { sid, client_secret: clientSecretOf(session) },
})

const hidden = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`

async function begin(wish: AddressWish, purpose: Purpose, fields: Fields, services: Services, sender: Sender) {
  const { sid } = await services.contactTokens.request(purpose, wish, {
    clientSecret: clientSecretOf(fields.session ?? ''),
    // Whoever asks once more wants another message.
    sendAttempt: services.clock.now(),
    nextLink: undefined,
    dialect: sender.dialect,
    isForwarded: sender.isForwarded,
    sender: networkOf(sender.ip),
    look: { brand: undefined, languages: preferredLanguages(sender.acceptLanguage) },
  })
  return { ...fields, sid }
}

const another = ({ session = '' }: Fields, text: string): string =>
  `<p class="hint"><a href="?session=${encodeURIComponent(session)}">${text}</a></p>`

export const emailFallback: FallbackStage = {
  heading: 'Confirm your email address',
  content: (_services, _view, fields) =>
    fields.sid === undefined
      ? `<p>We send you a link, to know that the address is yours.</p>
<label>Email address<input type="email" name="email" autocomplete="email" maxlength="500" value="${escapeHtml(fields.email ?? '')}" required></label>`
      : `<p>A link is on its way to <strong>${escapeHtml(fields.email ?? '')}</strong>. Open it, confirm there, and come back to this page.</p>
${hidden('sid', fields.sid)}
${hidden('email', fields.email ?? '')}
${another(fields, 'Send it again, or to another address')}`,
  button: ({ sid }) => (sid === undefined ? 'Send the link' : 'I have confirmed it'),
  async prepare(fields, services, { operation }, sender) {
    if (fields.sid !== undefined) return undefined
    const wish = { medium: 'email', email: fields.email?.trim() ?? '' } as const
    return begin(wish, purposeOf(operation), fields, services, sender)
  },
  auth: credsIn,
}

/** Any country does for a number that says its own. */
const ANY_COUNTRY = 'GB'

function internationalIn({ number = '' }: Fields): string {
  const written = number.trim().replace(/^00/, '+')
  if (written.startsWith('+')) return written
  throw new ProtocolError('M_INVALID_PARAM', 'Write the number with the code of its country, as in +44 7400 123456.')
}

export const msisdnFallback: FallbackStage = {
  heading: 'Confirm your phone number',
  content: (_services, _view, fields) =>
    fields.sid === undefined
      ? `<p>We send you a code, to know that the number is yours.</p>
<label>Phone number with the code of its country<input type="tel" name="number" autocomplete="tel" maxlength="64" placeholder="+44 7400 123456" value="${escapeHtml(fields.number ?? '')}" required></label>`
      : `<p>A code is on its way to <strong>${escapeHtml(fields.number ?? '')}</strong>.</p>
${hidden('sid', fields.sid)}
${hidden('number', fields.number ?? '')}
<label>Code<input type="text" name="token" inputmode="numeric" autocomplete="one-time-code" maxlength="32" required></label>
${another(fields, 'Send it again, or to another number')}`,
  button: ({ sid }) => (sid === undefined ? 'Send the code' : 'Continue'),
  async prepare(fields, services, { operation }, sender) {
    const purpose = purposeOf(operation)
    if (fields.sid === undefined) {
      const wish = { medium: 'msisdn', country: ANY_COUNTRY, number: internationalIn(fields) } as const
      return begin(wish, purpose, fields, services, sender)
    }
    const proof = { sid: fields.sid, clientSecret: clientSecretOf(fields.session ?? '') }
    await services.contactSessions.of(purpose).submit('msisdn', proof, fields.token?.trim() ?? '')
    return undefined
  },
  auth: credsIn,
}
