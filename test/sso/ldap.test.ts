import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Api, openApi, PASSWORD, register } from '../support/api.ts'
import { Browsing } from '../support/browsing.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { BASE, hasSlapd, READER, type Slapd, startSlapd } from '../support/slapd.ts'

const PEOPLE = [
  { uid: 'alice', cn: 'Alice Liddell', password: 'rabbit hole', mail: 'Alice@Example.org', employeeType: 'matrix' },
  { uid: 'Bob', cn: 'Bob', password: 'builder', employeeType: 'matrix' },
  { uid: 'carol', cn: 'Carol', password: 'christmas' },
  { uid: 'dan', cn: 'Dan one', password: 'one' },
  { uid: 'dan', cn: 'Dan two', password: 'one', below: 'ou=team' },
  { uid: 'erin', cn: 'Erin', password: 'in the team', below: 'ou=team' },
]

describe.skipIf(!hasSlapd())('a directory', () => {
  let authority: Authority
  let slapd: Slapd
  const servers: { server: AccountServer; api: Api }[] = []

  beforeAll(async () => {
    authority = createAuthority()
    slapd = await startSlapd(PEOPLE, authority.issue(['localhost']))
  })
  afterAll(async () => {
    for (const { server, api } of servers) {
      await api.close()
      await server.close()
    }
    await slapd?.close()
    authority?.remove()
  })

  async function open(ldap: object = {}, changes: object = {}) {
    const url = `ldap://127.0.0.1:${slapd.port}`
    const server = await startAccountServer({ ldap: { url, base_dn: BASE, ...ldap }, ...changes })
    const opened = { server, api: openApi(server.baseUrl) }
    servers.push(opened)
    return opened
  }
  const searching = { bind_dn: READER.dn, bind_password: READER.password }

  const enter = (api: Api, user: string, password: string) =>
    api.request('POST', '/login', {
      body: { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password },
    })
  const refused = { status: 403, body: { errcode: 'M_FORBIDDEN' } }

  it.each([
    ['directly', {}],
    ['by a search', searching],
  ])('lets people in by the passwords that it knows, found %s', async (_how, ldap) => {
    const { api } = await open(ldap)
    const first = await enter(api, 'alice', 'rabbit hole')
    expect(first).toMatchObject({ status: 200, body: { user_id: '@alice:localhost' } })
    const token = first.body.access_token
    const profile = await api.call('GET', `/profile/${encodeURIComponent('@alice:localhost')}`, { token })
    expect(profile.displayname).toBe('Alice Liddell')
    expect((await api.call('GET', '/account/3pid', { token })).threepids).toMatchObject([
      { address: 'alice@example.org' },
    ])
    // The same account, however the name is written.
    for (const name of ['alice', 'ALICE', '@alice:localhost', 'Bob', 'bob']) {
      const { body } = await enter(api, name, /bob/i.test(name) ? 'builder' : 'rabbit hole')
      expect(body.user_id).toBe(/bob/i.test(name) ? '@bob:localhost' : '@alice:localhost')
    }
    for (const password of ['', 'wrong', 'builder', '*'])
      expect(await enter(api, 'alice', password)).toMatchObject(refused)
    expect(await enter(api, 'nobody', 'rabbit hole')).toMatchObject(refused)
  })

  it.each([
    ['directly', {}],
    ['by a search', searching],
  ])('takes names for names, and not for questions, found %s', async (_how, ldap) => {
    const { api } = await open(ldap)
    for (const name of ['*', 'al*', 'a)(uid=*', 'alice)(|(uid=*', 'alice,ou=team', 'x\\2a', 'alice\0', '(', '#61']) {
      expect(await enter(api, name, 'rabbit hole')).toMatchObject(refused)
    }
  })

  it('lets people prove again who they are', async () => {
    const { api } = await open(searching)
    const { body } = await enter(api, 'alice', 'rabbit hole')
    const other = (await enter(api, 'alice', 'rabbit hole')).body.device_id
    const remove = (auth?: object) =>
      api.request('DELETE', `/devices/${other}`, { token: body.access_token, body: { ...(auth && { auth }) } })
    const { session } = (await remove()).body
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, session }
    expect((await remove({ ...auth, password: 'wrong' })).status).toBe(401)
    expect((await remove({ ...auth, password: 'rabbit hole' })).status).toBe(200)
  })

  it('is searched at every depth, with a filter, and not for a name that two have', async () => {
    const { api } = await open(searching)
    expect((await enter(api, 'erin', 'in the team')).status).toBe(200)
    expect(await enter(api, 'dan', 'one')).toMatchObject(refused)
    const filtered = await open({ ...searching, filter: '(employeeType=matrix)' })
    expect((await enter(filtered.api, 'alice', 'rabbit hole')).status).toBe(200)
    expect(await enter(filtered.api, 'carol', 'christmas')).toMatchObject(refused)
  })

  it('lets people in to the account page too', async () => {
    const { server } = await open(searching)
    const browser = new Browsing(server.baseUrl)
    const page = await browser.open('/_hearth/account')
    expect((await browser.signIn(page, 'alice', 'wrong')).text).toContain('The user name or the password is wrong.')
    const account = await browser.signIn(page, 'alice', 'rabbit hole')
    expect([account.heading, account.text.includes('@alice:localhost')]).toEqual(['Your account', true])
    // What cannot be undone needs no other password either.
    expect((await browser.open('/_hearth/account/deactivate')).heading).toBe('Delete your account?')
  })

  it('leaves accounts of others alone, unless operators say that names are the same people', async () => {
    const { api, server } = await open(searching)
    await register(api, 'carol')
    expect((await enter(api, 'carol', PASSWORD)).status).toBe(200)
    expect(await enter(api, 'carol', 'christmas')).toMatchObject(refused)
    const same = await open({ ...searching, allow_existing_users: true })
    await register(same.api, 'carol')
    expect((await enter(same.api, 'carol', 'christmas')).body.user_id).toBe('@carol:localhost')
    const closed = await open({ ...searching, allow_registration: false })
    expect(await enter(closed.api, 'alice', 'rabbit hole')).toMatchObject(refused)
    expect(await server.db.query('SELECT 1 AS one FROM account WHERE password_hash IS NULL')).toEqual([])
  })

  it('is spoken to over TLS, with a certificate that somebody vouches for', async () => {
    const url = `ldap://localhost:${slapd.port}`
    const { api } = await open({ ...searching, url, start_tls: true, ca_file: authority.file })
    expect((await enter(api, 'alice', 'rabbit hole')).status).toBe(200)
    const unknown = await open({ ...searching, url, start_tls: true })
    expect(await enter(unknown.api, 'alice', 'rabbit hole')).toMatchObject({ status: 503 })
  })

  it('that does not answer is no wrong password, and keeps nobody else out', async () => {
    const { api, server } = await open({ url: 'ldap://127.0.0.1:1' })
    await register(api, 'fay')
    expect((await enter(api, 'fay', PASSWORD)).status).toBe(200)
    expect(await enter(api, 'alice', 'rabbit hole')).toMatchObject({ status: 503, body: { errcode: 'M_UNKNOWN' } })
    const blind = await open({ ...searching, bind_password: 'wrong' })
    expect(await enter(blind.api, 'alice', 'rabbit hole')).toMatchObject({ status: 503 })
    expect(server.logged()).toContain('the LDAP directory gives no answer')
    expect(server.logged() + blind.server.logged()).not.toContain('rabbit hole')
  })

  it('is asked a few times only: wrong passwords are counted as everywhere', async () => {
    const { api } = await open(searching, { rate_limits: { enabled: true, login: { per_second: 0.001, burst: 5 } } })
    const answers = []
    for (let times = 0; times < 8; times++) answers.push((await enter(api, 'alice', `wrong ${times}`)).status)
    expect(answers.slice(0, 2)).toEqual([403, 403])
    expect(answers.at(-1)).toBe(429)
  })

  it('knows a person by one name, so that others are no way around the count of wrong passwords', async () => {
    const { api } = await open(searching)
    for (const name of ['alice ', ' alice', '\uff41lice', 'al\u00adice']) {
      expect(await enter(api, name, 'rabbit hole')).toMatchObject(refused)
    }
  })
})
