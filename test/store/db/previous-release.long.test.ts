import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRoom, login, openApi, register, sendText } from '../../support/api.ts'
import { startChildServer } from '../../support/child-server.ts'
import { createTestDatabase } from '../../support/database.ts'
import { PROJECT_ROOT } from '../../support/project.ts'

const run = promisify(execFile)
const git = async (...words: string[]) => (await run('git', words, { cwd: PROJECT_ROOT, maxBuffer: 1 << 28 })).stdout

/** The commit that is the release before this one: its tree is built beside this one. */
let commit: string
let previous: string

beforeAll(async () => {
  commit = (await readFile(join(PROJECT_ROOT, 'migrations/previous-release'), 'utf8')).trim()
  await git('cat-file', '-e', `${commit}^{commit}`).catch(() => {
    throw new Error(
      `The history of this checkout does not reach the previous release (${commit}): run "git fetch --unshallow", or clone without --depth.`,
    )
  })
  previous = await mkdtemp(join(tmpdir(), 'hearth-previous-'))
  const archive = join(previous, 'tree.tar')
  await git('archive', '--format=tar', `--output=${archive}`, commit)
  await run('tar', ['-xf', archive, '-C', previous])
  await rm(join(previous, 'node_modules'), { recursive: true, force: true })
  await symlink(join(PROJECT_ROOT, 'node_modules'), join(previous, 'node_modules'))
  await run(process.execPath, ['scripts/build.mjs'], { cwd: previous })
}, 300_000)

afterAll(() => previous && rm(previous, { recursive: true }))

test('A10: no migration of the previous release was changed since', async () => {
  const files = (await git('ls-tree', '-r', '--name-only', commit, 'migrations')).split('\n')
  const migrations = files.filter((name) => name.endsWith('.sql'))
  expect(migrations.length).toBeGreaterThan(40)
  const changed: string[] = []
  for (const name of migrations) {
    const now = await readFile(join(PROJECT_ROOT, name), 'utf8').catch(() => undefined)
    if (now !== (await git('show', `${commit}:${name}`))) changed.push(name)
  }
  expect(changed).toEqual([])
})

test('A10: the previous release starts on the newer database and serves what is in it; this one goes on afterwards', {
  timeout: 300_000,
}, async () => {
  const database = await createTestDatabase()
  let release = PROJECT_ROOT
  const server = await startChildServer({
    env: { HEARTH__DATABASE__URL: database.url },
    mainFile: () => join(release, 'dist/main.js'),
  })
  const api = openApi(server.baseUrl)
  const bodies = async (token: string, room: string) => {
    const { chunk } = await api.call('GET', `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=20`, { token })
    return chunk.flatMap(({ content }: { content: { body?: string } }) => content.body ?? [])
  }
  try {
    const alice = await register(api, 'alice')
    const room = await createRoom(api, alice.token, { preset: 'public_chat' })
    await sendText(api, alice.token, room, 'one', 'by the newer')

    await server.kill('SIGTERM')
    release = previous
    await server.start()
    const again = await login(api, 'alice')
    const bob = await register(api, 'bob')
    await api.call('POST', `/join/${encodeURIComponent(room)}`, { token: bob.token, body: {} })
    await sendText(api, bob.token, room, 'two', 'by the older')
    await sendText(api, alice.token, room, 'three', 'by the older, with the token of before')
    const first = await api.call('GET', '/sync?timeout=0', { token: again.token })
    expect(Object.keys(first.rooms.join)).toEqual([room])

    await server.kill('SIGTERM')
    release = PROJECT_ROOT
    await server.start()
    await sendText(api, bob.token, room, 'four', 'by the newer again')
    expect(await bodies(alice.token, room)).toEqual([
      'by the newer again',
      'by the older, with the token of before',
      'by the older',
      'by the newer',
    ])
    expect(server.output()).not.toContain('"level":50')
  } finally {
    await api.close()
    await server.dispose()
    await database.drop()
  }
})
