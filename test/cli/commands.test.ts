import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { PROJECT_ROOT } from '../support/project.ts'
import { runHearth, runProgramHere } from '../support/run-hearth.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-cli-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** As an operator does; each such process costs, so that of each kind of thing one is done so. */
const hearth = (words: string, env: Record<string, string> = {}) => runHearth(words.split(' '), { directory, env })
const here = (words: string, env: Record<string, string> = {}) => runProgramHere(words.split(' '), { directory, env })

test('--help names every command and exit code', async () => {
  const { code, stdout } = await hearth('--help')
  expect(code).toBe(0)
  for (const word of ['serve', 'init', 'config', 'doctor', 'user', 'keys', 'migrate', '78'])
    expect(stdout).toContain(word)
})

test('--version is the one of package.json', async () => {
  const { version } = JSON.parse(await readFile(join(PROJECT_ROOT, 'package.json'), 'utf8'))
  expect((await hearth('--version')).stdout).toBe(`${version}\n`)
})

test.each([
  ['frobnicate', 'there is no "frobnicate"'],
  ['config', 'say "check"'],
  ['serve --prot 1', "Unknown option '--prot'"],
  ['serve now', '"now" is not understood'],
  ['user create', 'say "create NAME"'],
])('%s is a wrong use, with advice', async (words, advice) => {
  const { code, stderr } = await (words === 'frobnicate' ? hearth(words) : here(words))
  expect(stderr).toContain(advice)
  expect(stderr).toContain('--help')
  expect(code).toBe(2)
})

test('each command explains itself', async () => {
  for (const name of ['serve', 'init', 'config', 'doctor', 'user', 'keys', 'migrate']) {
    const { code, stdout } = await here(`${name} --help`)
    expect([code, stdout]).toEqual([0, expect.stringContaining(`${name} `)])
  }
})

test('a wrong configuration stops every command with 78 and the place of each problem', async () => {
  await writeFile(join(directory, 'hearth.yaml'), 'listen:\n  prot: 1\n')
  for (const words of ['config check', 'config print', 'serve', 'keys show', 'migrate --plan', 'user create alice']) {
    const { code, stderr } = await (words === 'serve' ? hearth(words) : here(words))
    expect(stderr, words).toContain(
      `${join(directory, 'hearth.yaml')}:2: unknown key "listen.prot"; did you mean "listen.port"?`,
    )
    expect(code, words).toBe(78)
  }
})

test('config: the file named by flag or environment is used, and one that is not there is said so', async () => {
  const file = join(directory, 'other.yaml')
  await writeFile(file, 'listen: {port: 4321}\n')
  expect((await here(`config print --config ${file}`)).stdout).toMatch(/listen\.port: 4321 +# .*other\.yaml:1/)
  expect((await hearth('config check', { HEARTH_CONFIG: file })).stdout).toContain(file)
  const { code, stderr } = await here('config check --config missing.yaml')
  expect([code, stderr]).toEqual([78, expect.stringContaining('missing.yaml')])
})

test('init writes a file that is good, with the name asked for, and never overwrites one', async () => {
  const { code, stdout } = await hearth('init example.org')
  expect([code, stdout]).toEqual([0, expect.stringContaining('hearth.yaml')])
  expect((await here('config print')).stdout).toMatch(/server_name: "example\.org" +# .*hearth\.yaml:\d+/)
  expect((await stat(join(directory, 'data/signing.key'))).mode & 0o777).toBe(0o600)
  const before = await readFile(join(directory, 'hearth.yaml'), 'utf8')
  const again = await here('init other.org')
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is there already')])
  expect(await readFile(join(directory, 'hearth.yaml'), 'utf8')).toBe(before)
})

test('init writes the file and the data directory that it was asked for, so that every later command finds both', async () => {
  const [file, data] = [join(directory, 'etc.yaml'), join(directory, "data of 'mine'")]
  const written = await runProgramHere(['init', 'example.org', '--data-dir', data], {
    directory,
    env: { HEARTH_CONFIG: file },
  })
  expect(written).toMatchObject({ code: 0, stdout: expect.stringContaining(file) })
  expect((await stat(join(data, 'signing.key'))).mode & 0o777).toBe(0o600)
  const printed = (await here('config print', { HEARTH_CONFIG: file })).stdout
  expect(printed).toMatch(/server_name: "example\.org" +# .*etc\.yaml:\d+/)
  expect(printed).toContain(`data_dir: ${JSON.stringify(data)}`)
})

test('init refuses a server name that is none', async () => {
  expect(await here('init not_a_name')).toMatchObject({ code: 78, stderr: expect.stringContaining('server_name') })
})

test('keys: made once, for its owner only; one that others can read is refused', async () => {
  const first = await hearth('keys show')
  expect(first.stdout).toMatch(/^ed25519:a_[0-9a-f]{8} [A-Za-z0-9+/]{43}\n/)
  expect((await here('keys show')).stdout).toBe(first.stdout)
  const file = join(directory, 'data/signing.key')
  await chmod(file, 0o640)
  expect(await here('keys show')).toMatchObject({ code: 1, stderr: expect.stringContaining(`chmod 600 ${file}`) })
  await chmod(file, 0o600)
  const generated = (await here('keys generate')).stdout
  await writeFile(file, generated)
  const shown = (await here('keys show')).stdout
  expect(shown).not.toBe(first.stdout)
  expect(shown.startsWith(`ed25519:${generated.split(' ')[1]} `)).toBe(true)
  await writeFile(file, 'nonsense\n')
  expect(await here('keys show')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('does not hold a signing key'),
  })
})

test('a database that cannot be reached stops the start in words, without the password', async () => {
  const env = { HEARTH__DATABASE__URL: 'postgres://hearth:canary@127.0.0.1:1/hearth', HEARTH__METRICS__PORT: '0' }
  const { code, stdout, stderr } = await hearth('serve', env)
  expect([code, stderr]).toEqual([1, expect.stringMatching(/database\.url cannot be used: .*ECONNREFUSED/)])
  expect(stdout + stderr).not.toContain('canary')
})
