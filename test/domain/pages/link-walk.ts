import { startAccountServer } from '../../support/account-server.ts'
import { type Account, createRoom, type Json, join, PASSWORD, sendText } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import type { House } from './account-walk.ts'
import { htmlOf, linkIn, mailAfter } from './letters.ts'
import type { Album, Tour } from './tour.ts'

const HOUR = 3_600_000
const enc = encodeURIComponent

/** Links of mails that lead to nothing any more. */
export async function walkWrongLinks({ world, smtp }: House, tour: Tour): Promise<void> {
  const { open, look } = tour
  const before = smtp.mails.length
  const body = { client_secret: `links.${tour.language}`, email: `links-${tour.language}@example.org`, send_attempt: 1 }
  await world.api.call('POST', '/register/email/requestToken', { body })
  const link = new URL(await linkIn(smtp, before, world.origin))
  const changed = (key: string, value: string) => {
    const other = new URL(link)
    other.searchParams.set(key, value)
    return other.href
  }
  await open(changed('token', 'wrong'))
  await look('link-wrong-token')
  await open(changed('sid', 'unknown'))
  await look('link-unknown')
  world.advance(25 * HOUR)
  await open(link.href)
  await look('link-expired')
}

/** Mails, as programs that show HTML show them; and the pages that end them. */
export async function walkThroughMails(house: House, tour: Tour, name: string): Promise<void> {
  const { world, smtp } = house
  const { open, look, send, page, language } = tour
  const email = `${name}@example.org`
  const { token, userId } = await world.account(name)
  const headers = { 'accept-language': language }
  const lookIntoNext = async (before: number, which: string): Promise<string> => {
    const mail = await mailAfter(smtp, before)
    await page.setContent(htmlOf(mail))
    await look(`mail-${which}`)
    return mail
  }

  const add = { client_secret: `secret.${name}`, email, send_attempt: 1 }
  const beforeAdding = smtp.mails.length
  const asked = await ask(world.origin, '/account/3pid/email/requestToken', add, headers)
  await lookIntoNext(beforeAdding, 'validate')
  await open(await linkIn(smtp, beforeAdding, world.origin))
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: name }, password: PASSWORD }
  const proof = { sid: asked.sid, client_secret: add.client_secret }
  await world.api.call('POST', '/account/3pid/add', { token, body: { ...proof, auth } })
  const beforeReset = smtp.mails.length
  await ask(world.origin, '/account/password/email/requestToken', { ...add, client_secret: `reset.${name}` }, headers)
  await lookIntoNext(beforeReset, 'reset')

  // Whose account is new is not told of logins.
  world.advance(HOUR)
  const beforeLogin = smtp.mails.length
  const login = { ...auth, device_id: 'NEWPHONE01', initial_device_display_name: 'A <b>phone</b> & more' }
  await ask(world.origin, '/login', login, headers)
  await lookIntoNext(beforeLogin, 'new-login')

  await unreadMail(house, { token, userId, deviceId: '' }, email, language)
  const beforeUnread = smtp.mails.length
  world.advance(11 * 60_000)
  await lookIntoNext(beforeUnread, 'unread')
  await open(await linkIn(smtp, beforeUnread, world.origin))
  await look('unsubscribe')
  await send()
  await look('unsubscribed')
  await page.reload()
  await look('unsubscribe-unknown')

  const beforeInvite = smtp.mails.length
  await invite(house, { token, userId, deviceId: '' }, headers)
  await lookIntoNext(beforeInvite, 'invite')
}

async function ask(origin: string, path: string, body: object, headers: Record<string, string>): Promise<Json> {
  const answer = await fetch(`${origin}${path.startsWith('/_') ? path : `/_matrix/client/v3${path}`}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path}: ${text}`)
  return JSON.parse(text)
}

/** Has messages of several kinds wait for somebody who gets mails about them. */
async function unreadMail({ world }: House, reader: Account, email: string, lang: string): Promise<void> {
  const { api } = world
  const friend = await world.account(`friend.${lang}`)
  const body = { displayname: 'Bobby “Tables” <3' }
  await api.call('PUT', `/profile/${friend.userId}/displayname`, { token: friend.token, body })
  const open = async (name: string) => {
    const room = await createRoom(api, friend.token, { preset: 'public_chat', name })
    await join(api, reader.token, room)
    return room
  }
  const [harbour, quiet] = [await open('Harbour & sea'), await open('')]
  await api.call('POST', '/pushers/set', {
    token: reader.token,
    body: {
      ...{ kind: 'email', app_id: 'm.email', pushkey: email, app_display_name: 'Mail', device_display_name: email },
      ...{ lang, data: {} },
    },
  })
  for (let n = 0; n < 8; n++) {
    await sendText(api, friend.token, harbour, `m${n}`, `message ${n} ${'with many words '.repeat(n)}`)
  }
  const encrypted = { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'x' }
  await api.call('PUT', `/rooms/${enc(quiet)}/send/m.room.encrypted/e1`, { token: friend.token, body: encrypted })
  await createRoom(api, friend.token, { name: 'Cellar', invite: [reader.userId] })
  await waitUntil('a mail that is due', async () => {
    const [row] = await world.db.query<{ lags: boolean }>('SELECT lags FROM pusher WHERE pushkey = $1', [email])
    return row?.lags === true
  })
}

/** Invites somebody whom the identity service does not know. */
async function invite({ world }: House, { token, userId }: Account, headers: Record<string, string>): Promise<void> {
  const openId = await world.api.call('POST', `/user/${enc(userId)}/openid/request_token`, { token, body: {} })
  const identity = await world.api.call('POST', '/_matrix/identity/v2/account/register', { body: openId })
  const body = {
    medium: 'email',
    address: `invited-by-${userId.slice(1, 5)}@example.org`,
    room_id: '!garden:localhost',
    sender: userId,
    sender_display_name: 'Ada Lovelace',
    room_name: 'A garden where things grow',
  }
  const authorization = `Bearer ${identity.token}`
  await ask(world.origin, '/_matrix/identity/v2/store-invite', body, { ...headers, authorization })
}

/** The page of an identity service alone. */
export async function walkToIdentityService(album: Album, tour: Tour): Promise<void> {
  const languages = [
    { language: 'en', name: 'Privacy Policy', url: 'https://example.org/privacy-en' },
    { language: 'de', name: 'Datenschutz', url: 'https://example.org/privacy-de' },
  ]
  const server = await startAccountServer({
    roles: ['identity'],
    identity: {
      brand: 'Example <Chat>',
      base_url: 'https://identity.example.org',
      terms: { policies: [{ id: 'privacy', version: '1', languages }] },
    },
  })
  album.watch(server.services)
  try {
    await tour.open(server.baseUrl)
    await tour.look('welcome-identity')
    await tour.open(`${server.baseUrl}/_matrix/identity/v2/validate/email/submitToken?sid=cut`)
    await tour.look('identity-link-cut')
  } finally {
    await server.close()
  }
}
