import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PROJECT_ROOT } from '../../support/project.ts'

/** The built program beside packages of which one is another. */
let root: string

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hearth-packages-'))
  await cp(join(PROJECT_ROOT, 'dist'), join(root, 'dist'), { recursive: true })
  for (const name of ['package.json', 'migrations', 'templates'])
    await symlink(join(PROJECT_ROOT, name), join(root, name))
  await mkdir(join(root, 'node_modules'))
  for (const name of await readdir(join(PROJECT_ROOT, 'node_modules'))) {
    await symlink(join(PROJECT_ROOT, 'node_modules', name), join(root, 'node_modules', name))
  }
})

afterAll(() => rm(root, { recursive: true }))

async function withPackage(name: string, code: string | undefined, work: () => Promise<void>): Promise<void> {
  const place = join(root, 'node_modules', name)
  await rm(place)
  if (code !== undefined) {
    await mkdir(place)
    await writeFile(
      join(place, 'package.json'),
      JSON.stringify({ name, version: '0.0.0', type: 'module', main: 'index.js' }),
    )
    await writeFile(join(place, 'index.js'), code)
  }
  try {
    await work()
  } finally {
    await rm(place, { recursive: true, force: true })
    await symlink(join(PROJECT_ROOT, 'node_modules', name), place)
  }
}

function hearth(...words: string[]): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const env = {
      PATH: process.env.PATH,
      HEARTH__DATA_DIR: join(root, 'data'),
      HEARTH__LISTEN__PORT: '0',
      HEARTH__METRICS__PORT: '0',
    }
    const child = spawn(process.execPath, [join(root, 'dist/main.js'), ...words], { cwd: root, env })
    let text = ''
    const keep = (bytes: Buffer) => {
      text += bytes.toString()
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', reject).on('close', (code) => resolve({ code, text }))
  })
}

const NACL = (sign: string) => `export default { sign: {
  keyPair: { fromSeed: () => ({ publicKey: new Uint8Array(32), secretKey: new Uint8Array(64) }) },
  detached: Object.assign(() => new Uint8Array(64), { verify: () => ${sign} }) } }`

test.each([
  ['tweetnacl', NACL('true'), 'tweetnacl comes to other bytes'],
  [
    'canonical-json',
    'export const walk = (value, write) => write(JSON.stringify(value))',
    'canonical-json comes to other bytes',
  ],
  ['tweetnacl', undefined, 'cannot be loaded'],
])('D4: a start beside a broken %s ends with exit 1 and names it', (name, code, message) =>
  withPackage(name, code, async () => {
    const ended = await hearth('serve')
    expect(ended).toMatchObject({ code: 1, text: expect.stringContaining(message) })
    expect(ended.text).toContain(name)
  }),
)

test('D4: hearth doctor makes the same comparison', () =>
  withPackage('tweetnacl', NACL('true'), async () => {
    const { code, text } = await hearth('doctor', '--json', '--time-server', '127.0.0.1')
    expect(code).toBe(1)
    expect(text).toContain('tweetnacl comes to other bytes than the published vectors')
  }))
