import { createInterface } from 'node:readline'
import { type Api, type Json, openApi } from '../../support/api.ts'
import { createAuthority } from '../../support/certificate.ts'
import { LIES } from './lies.ts'
import { MANNERS, poured } from './manners.ts'
import { openPeer, type Peer, questionsTo } from './peer.ts'

/**
 * Hostile servers in a process of their own. By hand, one that lies as it is told to:
 *
 *     npx tsx test/federation/hostile/program.ts 'make_join=another sender' '*=drips'
 *
 * With `--told` it does what it reads: a line `[id, peer, verb, ...words]` is answered by `[id, result]`, or `[id, null, error]`.
 */
const peers = new Map<string, Peer>()
/** As users of the server that is lied to. */
const users = new Map<string, Api>()

function userOf(url: string): Api {
  const api = users.get(url) ?? openApi(url, { connections: 1_000 })
  users.set(url, api)
  return api
}

async function open(certificate: Parameters<typeof openPeer>[0]): Promise<Peer> {
  const peer = await openPeer(certificate)
  peers.set(peer.name, peer)
  return peer
}

const verbs: Readonly<Record<string, (peer: Peer, ...words: Json[]) => Json>> = {
  open: async (_, certificate) => (await open({ issue: () => certificate })).name,
  room: (peer, room) => peer.open(room).roomId,
  lie: (peer, operation, lie, detail) => peer.lie(operation, lie, detail),
  ask: (peer, to, method, uri) => peer.ask(to, method, uri),
  haveAsked: async (peer, { url }, token) => void (await Promise.all(questionsTo(peer, userOf(url), token))),
  repent: (peer) => peer.repent(),
  requests: (peer) => peer.front.requests,
  askedAtLeast: () => Math.min(...[...peers.values()].map(({ front }) => front.requests.length)),
  close(peer) {
    peers.delete(peer.name)
    return peer.close()
  },
  poured: () => poured.bytes,
}

async function obey(line: string): Promise<void> {
  const [id, name, verb, ...words] = JSON.parse(line)
  const answer = await Promise.resolve(verbs[verb]!(peers.get(name)!, ...words)).then(
    (result) => [id, result ?? null],
    (error) => [id, null, String(error)],
  )
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}

async function byHand(lies: readonly string[]): Promise<void> {
  const authority = createAuthority()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit())
  process.once('exit', authority.remove)
  const peer = await open(authority)
  const { roomId } = peer.open({ version: '11', name: 'lair', since: Date.now() })
  for (const each of lies) {
    const [operation = '', lie = ''] = each.split('=')
    peer.lie(operation, lie)
  }
  const known = Object.entries({ ...LIES, '*': MANNERS }).map(([of, all]) => `${of}=${Object.keys(all).join(' | ')}`)
  console.info(
    `server ${peer.name}\nroom ${roomId}\nauthority ${authority.file}\n\nwhat it can be told:\n${known.join('\n')}`,
  )
}

const [first, ...others] = process.argv.slice(2)
if (first === '--told') {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => void obey(line))
  lines.on('close', () => process.exit())
} else await byHand(first === undefined ? [] : [first, ...others])
