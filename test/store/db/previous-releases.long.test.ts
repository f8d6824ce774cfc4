import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Account,
  type Api,
  createRoom,
  join as joinRoom,
  login,
  openApi,
  register,
  sendText,
} from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { PROJECT_ROOT } from '../../support/project.ts'

const run = promisify(execFile)
const git = async (...words: string[]) => (await run('git', words, { cwd: PROJECT_ROOT, maxBuffer: 1 << 28 })).stdout

/** Commits, the newest first. */
const releases = (await readFile(join(PROJECT_ROOT, 'migrations/previous-releases'), 'utf8'))
  .split('\n')
  .filter((line) => /^[0-9a-f]{40}$/.test(line))

/** Where each commit is built, beside this tree. */
const trees = new Map<string, string>()
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hearth-previous-'))
  for (const commit of releases) {
    await git('cat-file', '-e', `${commit}^{commit}`).catch(() => {
      throw new Error(
        `The history of this checkout does not reach the release ${commit}: run "git fetch --unshallow", or clone without --depth.`,
      )
    })
    trees.set(commit, await build(commit))
  }
}, 300_000)

afterAll(() => folder && rm(folder, { recursive: true }))

/** The program of a commit, as its tarball has it, with the libraries that its lock file names. */
async function build(commit: string): Promise<string> {
  const tree = join(folder, commit)
  await run('mkdir', [tree])
  const archive = `${tree}.tar`
  await git('archive', '--format=tar', `--output=${archive}`, commit, 'package.json', 'package-lock.json', ...PARTS)
  await run('tar', ['-xf', archive, '-C', tree])
  await addLibraries(tree)
  await run(process.execPath, ['scripts/build.mjs'], { cwd: tree })
  return tree
}

interface Locked {
  readonly version?: string
  readonly link?: boolean
}

async function lockOf(tree: string): Promise<Map<string, Locked>> {
  const { packages } = JSON.parse(await readFile(join(tree, 'package-lock.json'), 'utf8'))
  const entries = Object.entries<Locked>(packages).filter(([path, { link }]) => path !== '' && link !== true)
  return new Map(entries)
}

/** Those of today, without the ones that came later, and with the ones that had another version then, which npm has. */
async function addLibraries(tree: string): Promise<void> {
  const [then, now] = [await lockOf(tree), await lockOf(PROJECT_ROOT)]
  const from = join(PROJECT_ROOT, 'node_modules')
  // As links where both are on one file system: then it takes no time.
  await run('cp', ['-al', from, tree]).catch(async () => {
    await rm(join(tree, 'node_modules'), { recursive: true, force: true })
    await run('cp', ['-a', from, tree])
  })
  for (const path of now.keys()) if (!then.has(path)) await rm(join(tree, path), { recursive: true, force: true })
  for (const [path, { version }] of then) {
    if (now.get(path)?.version === version) continue
    const place = join(tree, path)
    await rm(place, { recursive: true, force: true })
    await mkdir(place, { recursive: true })
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const packed = await run('npm', ['pack', '--silent', '--prefer-offline', `${name}@${version}`], { cwd: tree })
    await run('tar', ['-xf', join(tree, packed.stdout.trim()), '-C', place, '--strip-components=1'])
  }
}

const PARTS = ['src', 'scripts', 'migrations', 'templates']

interface Releases {
  readonly server: ChildServer
  readonly api: Api
  /** Stops what runs, and starts another release on the same data. */
  change(commit: string | undefined): Promise<void>
}

/** A server on a database, which runs one release after another; undefined stands for this one. */
async function withReleases(
  database: TestDatabase,
  first: string | undefined,
  work: (releases: Releases) => Promise<void>,
): Promise<void> {
  const treeOf = (commit: string | undefined) => (commit === undefined ? PROJECT_ROOT : trees.get(commit)!)
  let tree = treeOf(first)
  const server = await startChildServer({
    env: { HEARTH__DATABASE__URL: database.url, HEARTH__RATE_LIMITS__ENABLED: 'false' },
    mainFile: () => join(tree, 'dist/main.js'),
  })
  const api = openApi(server.baseUrl)
  try {
    await work({
      server,
      api,
      async change(commit) {
        await server.kill('SIGTERM')
        tree = treeOf(commit)
        await server.start()
      },
    })
    expect(server.output()).not.toContain('"level":50')
  } finally {
    await api.close()
    await server.dispose()
    await database.drop()
  }
}

async function bodies(api: Api, token: string, room: string): Promise<string[]> {
  const { chunk } = await api.call('GET', `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=50`, { token })
  return chunk.flatMap(({ content }: { content: { body?: string } }) => content.body ?? []).reverse()
}

describe('upgrade and rollback', () => {
  test('A10: no migration of the last three releases was changed since', async () => {
    expect(releases).toHaveLength(3)
    const changed: string[] = []
    for (const commit of releases) {
      const files = (await git('ls-tree', '-r', '--name-only', commit, 'migrations')).split('\n')
      const migrations = files.filter((name) => name.endsWith('.sql'))
      expect(migrations.length).toBeGreaterThan(40)
      for (const name of migrations) {
        const now = await readFile(join(PROJECT_ROOT, name), 'utf8').catch(() => undefined)
        if (now !== (await readFile(join(trees.get(commit)!, name), 'utf8'))) changed.push(`${commit}: ${name}`)
      }
    }
    expect(changed).toEqual([])
  })

  test('A10: an upgrade from the third release before this one, through those between, keeps everything', {
    timeout: 120_000,
  }, async () => {
    const [oldest, ...later] = releases.toReversed()
    await withReleases(await createTestDatabase(true), oldest, async ({ api, change }) => {
      const alice = await register(api, 'alice')
      const bob = await register(api, 'bob')
      const room = await createRoom(api, alice.token, {
        preset: 'public_chat',
        name: 'The house',
        room_alias_name: 'house',
      })
      await joinRoom(api, bob.token, room)
      await keep(api, alice)
      const said = [`by ${oldest}`]
      await sendText(api, alice.token, room, 'first', said[0]!)
      const before = await api.call('GET', '/sync?timeout=0', { token: bob.token })

      for (const release of [...later, undefined]) {
        await change(release)
        expect(await bodies(api, bob.token, room), `as ${release ?? 'this release'} sees it`).toEqual(said)
        said.push(`by ${release}`)
        await sendText(api, alice.token, room, `by-${release}`, said.at(-1)!)
      }

      await expectKept(api, alice)
      expect((await login(api, 'bob')).userId).toBe(bob.userId)
      const { room_id: found } = await api.call('GET', `/directory/room/${encodeURIComponent('#house:localhost')}`)
      expect(found).toBe(room)
      // A client that synced with the oldest release goes on with its token, and misses nothing.
      const after = await api.call('GET', `/sync?timeout=0&since=${before.next_batch}`, { token: bob.token })
      const seen = after.rooms.join[room].timeline.events.map(
        (event: { content: { body?: string } }) => event.content.body,
      )
      expect(seen).toEqual(said.slice(1))
      expect(await bodies(api, alice.token, room)).toEqual(said)
    })
  })

  test.each(releases.map((commit, index) => ({ commit, back: index + 1 })))(
    'A10: the database of this release serves the release $back before, which goes on with what is in it, and then this one again',
    { timeout: 120_000 },
    async ({ commit, back }) => {
      await withReleases(await createTestDatabase(), undefined, async ({ server, api, change }) => {
        const alice = await register(api, 'alice')
        const room = await createRoom(api, alice.token, { preset: 'public_chat' })
        await keep(api, alice)
        await sendText(api, alice.token, room, 'one', 'by the newer')

        const isRefused = await change(commit).then(
          () => false,
          (error: unknown) => {
            // One release back is a promise. Further back, a release may have broken what it no longer needs, and then says so.
            if (back > 1 && server.output().includes('this one cannot run on it')) return true
            throw error
          },
        )
        const said = ['by the newer']
        if (!isRefused) {
          said.push('by the older', 'by the older, with the token of before')
          await expectKept(api, alice)
          const again = await login(api, 'alice')
          const bob = await register(api, 'bob')
          await joinRoom(api, bob.token, room)
          await sendText(api, bob.token, room, 'two', said[1]!)
          await sendText(api, alice.token, room, 'three', said[2]!)
          const first = await api.call('GET', '/sync?timeout=0', { token: again.token })
          expect(Object.keys(first.rooms.join)).toEqual([room])
          expect(await bodies(api, bob.token, room)).toEqual(said)
        }

        await change(undefined)
        await sendText(api, alice.token, room, 'four', 'by the newer again')
        expect(await bodies(api, alice.token, room)).toEqual([...said, 'by the newer again'])
        await expectKept(api, alice)
      })
    },
  )
})

const FILE = 'the bytes of a file'

/** What a user keeps on a server besides messages. */
async function keep(api: Api, { token, userId }: Account): Promise<void> {
  const user = encodeURIComponent(userId)
  await api.call('PUT', `/user/${user}/account_data/org.example.kept`, { token, body: { kept: true } })
  await api.call('PUT', `/profile/${user}/displayname`, { token, body: { displayname: 'Alice' } })
  const { content_uri: uri } = await api.call('POST', '/_matrix/media/v3/upload?filename=kept', { token, body: FILE })
  await api.call('PUT', `/profile/${user}/avatar_url`, { token, body: { avatar_url: uri } })
}

async function expectKept(api: Api, { token, userId }: Account): Promise<void> {
  const user = encodeURIComponent(userId)
  const data = await api.call('GET', `/user/${user}/account_data/org.example.kept`, { token })
  expect(data).toEqual({ kept: true })
  const { displayname, avatar_url: uri } = await api.call('GET', `/profile/${user}`, { token })
  expect(displayname).toBe('Alice')
  const file = await api.call('GET', `/_matrix/client/v1/media/download/${uri.slice('mxc://'.length)}`, { token })
  expect(file).toBe(FILE)
}
