import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/config/schema.ts'
import { type Api, openApi } from '../support/api.ts'
import { type ServerTestOptions, startServer, type TestServer } from '../support/server.ts'

/** What a registration of these tests says; the rest is made up. */
export interface RegistrationWish {
  readonly id?: string
  readonly url?: string | null
  readonly sender_localpart?: string
  readonly namespaces?: object
  readonly [key: string]: unknown
}

export interface TestRegistration extends RegistrationWish {
  readonly id: string
  readonly url: string | null
  readonly as_token: string
  readonly hs_token: string
  readonly sender_localpart: string
}

const own = (regex: string, exclusive = true) => ({ regex, exclusive })

/** A service called `id` whose users are `@_id_...` and whose aliases are `#_id_...`. */
export function registration(id: string, wish: RegistrationWish = {}): TestRegistration {
  return {
    id,
    url: null,
    as_token: `as_${id}_${randomBytes(8).toString('hex')}`,
    hs_token: `hs_${id}_${randomBytes(8).toString('hex')}`,
    sender_localpart: `_${id}_bot`,
    namespaces: { users: [own(`@_${id}_.*`)], aliases: [own(`#_${id}_.*`)], rooms: [] },
    ...wish,
  }
}

export interface World {
  readonly server: TestServer
  readonly api: Api
  /** The directory of the registrations. */
  readonly directory: string
  /** Puts a registration there, as a file of its id; JSON is YAML too. */
  register(registration: TestRegistration): Promise<void>
  close(): Promise<void>
}

type Overrides = Parameters<typeof startServer>[0]

/** A server with these services. */
export async function openWorld(
  registrations: readonly TestRegistration[],
  overrides: Overrides = {},
  options: ServerTestOptions = {},
): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-registrations-'))
  const register = (one: TestRegistration) => writeFile(join(directory, `${one.id}.yaml`), JSON.stringify(one))
  for (const one of registrations) await register(one)
  const application_services = { registrations: [directory] } satisfies Config['application_services']
  const server = await startServer({ ...overrides, application_services }, options)
  const api = openApi(server.baseUrl)
  return {
    server,
    api,
    directory,
    register,
    async close() {
      await api.close()
      await server.close()
      await rm(directory, { recursive: true })
    },
  }
}

/** `path` with the user as whom a service calls. */
export function as(userId: string, path: string, more = ''): string {
  return `${path}${path.includes('?') ? '&' : '?'}user_id=${encodeURIComponent(userId)}${more}`
}

/** Makes the account of a user of a service. */
export async function makeGhost(api: Api, { as_token }: TestRegistration, username: string): Promise<string> {
  const body = { type: 'm.login.application_service', username, inhibit_login: true }
  return (await api.call('POST', '/register', { token: as_token, body })).user_id
}
