import { type Account, type Api, type Json, openApi, register, sendText } from '../support/api.ts'
import { type ServerTestOptions, startServer, type TestServer } from '../support/server.ts'

/** What an endpoint answered, whatever it was. */
export interface Answer {
  readonly status: number
  readonly body: Json
}

/** A registered user with the calls that tests of rooms make. Calls throw on anything but a 2xx; `ask` never does. */
export interface Person extends Account {
  ask(method: string, path: string, body?: unknown): Promise<Answer>
  call(method: string, path: string, body?: unknown): Promise<Json>
  createRoom(request?: object): Promise<string>
  join(room: string): Promise<void>
  leave(room: string): Promise<void>
  invite(room: string, whom: Person): Promise<void>
  say(room: string, text: string): Promise<string>
  setState(room: string, type: string, content: object, stateKey?: string): Promise<string>
  sync(query?: string): Promise<Json>
}

export interface House {
  readonly server: TestServer
  readonly api: Api
  person(name: string): Promise<Person>
  /** Starts the server again on the same database: what was only in memory is gone. */
  restart(): Promise<void>
  close(): Promise<void>
}

export const inRoom = (room: string, rest: string): string => `/rooms/${encodeURIComponent(room)}${rest}`

/** A server with nobody in it yet. */
export async function openHouse(options: ServerTestOptions = {}): Promise<House> {
  const server = await startServer({}, options)
  const api = openApi(server.baseUrl)
  return {
    server,
    api,
    person: async (name) => personOf(api, await register(api, name)),
    restart: () => server.restart(),
    async close() {
      await api.close()
      await server.close()
    },
  }
}

export function personOf(api: Api, account: Account): Person {
  const { token } = account
  let sent = 0
  const call: Person['call'] = (method, path, body) => api.call(method, path, { token, body })
  return {
    ...account,
    call,
    ask: (method, path, body) => api.request(method, path, { token, body }),
    createRoom: async (request = {}) => (await call('POST', '/createRoom', request)).room_id,
    join: (room) => call('POST', inRoom(room, '/join'), {}),
    leave: (room) => call('POST', inRoom(room, '/leave'), {}),
    invite: (room, whom) => call('POST', inRoom(room, '/invite'), { user_id: whom.userId }),
    say: (room, text) => sendText(api, token, room, `say-${++sent}`, text),
    async setState(room, type, content, stateKey = '') {
      const path = inRoom(room, `/state/${type}/${encodeURIComponent(stateKey)}`)
      return (await call('PUT', path, content)).event_id
    },
    sync: (query = '') => call('GET', `/sync?timeout=0${query}`),
  }
}

export const textsOf = (events: readonly Json[]): string[] =>
  events.filter(({ type }) => type === 'm.room.message').map(({ content }) => content.body)

export const idsOf = (events: readonly Json[]): string[] => events.map(({ event_id }) => event_id)
