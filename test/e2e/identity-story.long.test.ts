import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import './promise-with-resolvers.ts'
import { KnownMembership, type MatrixClient, Preset, SERVICE_TYPES } from 'matrix-js-sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openApi, register } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { waitUntil } from '../support/wait.ts'
import { startClient } from './js-sdk-story.ts'

/** Where pictures of the pages go; nowhere without it. */
const pictures = process.env.PICTURES

/** A person with a client, and what they have at the identity service. */
interface Person {
  readonly client: MatrixClient
  readonly userId: string
  readonly identityToken: string
}

describe.skipIf(chromiumPath() === undefined)('an address, from the account to the invitation', () => {
  let directory: string
  let smtp: SmtpSink
  let server: TestServer
  let browser: TestBrowser
  const clients: MatrixClient[] = []

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hearth-story-'))
    await writeFile(join(directory, 'privacy-1-en.txt'), '# Privacy\n\nWe keep your address, so that friends find you.')
    smtp = await startSmtp({ hideSTARTTLS: true })
    const languages = [{ language: 'en', name: 'Privacy Policy' }]
    server = await startServer({
      // Links in mails lead there, so it has to be known beforehand.
      listen: { port: await freePort() },
      identity: {
        brand: 'Hearthside',
        mail: { from: 'id@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' } },
        terms: { directory, policies: [{ id: 'privacy', version: '1', languages }] },
      },
    })
    browser = await openBrowser()
  })

  afterAll(async () => {
    for (const client of clients) client.stopClient()
    await browser.close()
    await server.close()
    await smtp.close()
    await rm(directory, { recursive: true })
  })

  /** An account, a client that syncs, and an account of the identity service whose terms are accepted. */
  async function arrive(name: string): Promise<Person> {
    const api = openApi(server.baseUrl)
    const { userId } = await register(api, name)
    await api.close()
    const client = await startClient(server.baseUrl, fetch, name, 20)
    clients.push(client)
    client.setIdentityServerUrl(server.baseUrl)
    const { token } = await client.registerWithIdentityServer(await client.getOpenIdToken())
    client.identityServer = { getAccessToken: async () => token }
    await expect(client.getIdentityAccount(token)).rejects.toMatchObject({ errcode: 'M_TERMS_NOT_SIGNED' })
    await acceptTerms(client, token)
    expect(await client.getIdentityAccount(token)).toEqual({ user_id: userId })
    return { client, userId, identityToken: token }
  }

  async function acceptTerms(client: MatrixClient, token: string): Promise<void> {
    const { policies } = await client.getTerms(SERVICE_TYPES.IS, server.baseUrl)
    const { en } = policies.privacy as unknown as { en: { name: string; url: string } }
    expect(en.name).toBe('Privacy Policy')
    expect(await (await fetch(en.url)).text()).toContain('so that friends find you')
    await client.agreeToTerms(SERVICE_TYPES.IS, server.baseUrl, token, [en.url])
  }

  /** The link of the newest mail to somebody. */
  function linkFor(address: string): string {
    const mail = smtp.mails.findLast(({ to }) => to.includes(address.toLowerCase()))
    const link = /https?:\/\/\S+\/submitToken\?[^\s"<>]+/.exec(decodeQuotedPrintable(mail?.raw ?? ''))?.[0]
    if (link === undefined) throw new Error(`no mail to ${address} has a link`)
    return link
  }

  async function openLink(link: string, name: string, colorScheme: 'light' | 'dark', width: number): Promise<string> {
    const context = await browser.newContext({ viewport: { width, height: 760 }, locale: 'en-GB', colorScheme })
    const page = await context.newPage()
    const trouble: string[] = []
    page.on('console', (message) => trouble.push(message.text()))
    page.on('pageerror', (error) => trouble.push(error.message))
    await page.goto(link)
    const heading = await page.locator('h1').textContent()
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    // That a link is refused is no trouble of the page.
    expect(trouble.filter((text) => !text.includes('a status of 400'))).toEqual([])
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) })
    await context.close()
    return heading ?? ''
  }

  /** Shows that an address is theirs, by the link of a real mail in a real browser, and publishes it. */
  async function bind(
    { client, identityToken }: Person,
    address: string,
    colorScheme: 'light' | 'dark',
  ): Promise<void> {
    const secret = client.generateClientSecret()
    const { sid } = await client.requestEmailToken(address, secret, 1, undefined, identityToken)
    const link = linkFor(address)
    const broken = link.replace(/token=[^&]+$/, 'token=wrong')
    expect(await openLink(broken, `wrong-${colorScheme}`, colorScheme, 390)).toBe('This link is not the right one')
    expect(await openLink(link, `confirmed-${colorScheme}`, colorScheme, 1_200)).toBe('Thank you, that worked')
    expect(await openLink(link, `again-${colorScheme}`, colorScheme, 390)).toBe('Thank you, that worked')
    const id_server = client.getIdentityServerUrl(true) ?? ''
    await client.bindThreePid({ sid, client_secret: secret, id_server, id_access_token: identityToken })
  }

  it('works with real parts', async () => {
    const alice = await arrive('alice')
    await bind(alice, 'Alice@Example.org', 'light')

    const bob = await arrive('bob')
    const found = await bob.client.identityHashedLookup(
      [
        ['alice@example.org', 'email'],
        ['carol@example.org', 'email'],
      ],
      bob.identityToken,
    )
    expect(found).toEqual([{ address: 'alice@example.org', mxid: alice.userId }])

    const { room_id: roomId } = await bob.client.createRoom({ name: 'By the fire', preset: Preset.PrivateChat })
    await bob.client.inviteByEmail(roomId, 'carol@example.org')
    const invitation = smtp.mails.findLast(({ to }) => to.includes('carol@example.org'))
    expect(decodeQuotedPrintable(invitation?.raw ?? '')).toContain('By the fire')
    const pending = await waitUntil('the pending invitation in the room', () => {
      const events = bob.client.getRoom(roomId)?.currentState.getStateEvents('m.room.third_party_invite') ?? []
      return events[0]
    })
    expect(JSON.stringify(pending.getContent())).not.toContain('carol@')

    const carol = await arrive('carol')
    expect(carol.client.getRoom(roomId)).toBeNull()
    await bind(carol, 'carol@example.org', 'dark')
    const invited = await waitUntil('the invitation in her sync', () => {
      const room = carol.client.getRoom(roomId)
      return room?.getMyMembership() === KnownMembership.Invite && room
    })
    expect(invited.name).toBe('By the fire')
    await carol.client.joinRoom(roomId)
    await waitUntil('her arrival', () => {
      return bob.client.getRoom(roomId)?.getMember(carol.userId)?.membership === KnownMembership.Join
    })
  })
})
