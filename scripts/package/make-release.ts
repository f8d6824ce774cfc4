import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './project.ts'

export type Step = 'patch' | 'minor'

/** How many releases back tests upgrade from. */
const KEPT_RELEASES = 3
const UNRELEASED = /^## (?:\d+\.\d+\.\d+, )?not yet released$/im

/** Where the version is written besides package.json, which is the one that counts: a pattern whose first group stays. */
const PLACES: readonly (readonly [file: string, pattern: RegExp, places: number])[] = [
  ['package.json', /^( {2}"version": ")[^"]+/m, 1],
  ['package-lock.json', /^((?: {2}| {6})"version": ")[^"]+/gm, 2],
  ['contrib/helm/hearth/Chart.yaml', /^((?:version|appVersion): ).+/gm, 2],
  ['contrib/compose/compose.yaml', /^( {4}image: hearth:).+/gm, 1],
  ['contrib/compose/with-postgres.yaml', /^( {4}image: hearth:).+/gm, 1],
]

export function nextVersion(version: string, step: Step): string {
  const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)$/.exec(version) ?? []
  if (major === undefined) throw new Error(`package.json: ${version} is not a version of three numbers`)
  return step === 'patch' ? `${major}.${minor}.${Number(patch) + 1}` : `${major}.${Number(minor) + 1}.0`
}

/**
 * Makes a release of the checkout in `root`: a commit with the next version and a dated changelog, its tag, and a commit after it that
 * names it as the release before the next one. Publishes and pushes nothing.
 *
 * @param today YYYY-MM-DD
 * @returns the version
 * @throws Error if the tree is not clean, the tag is there, or the changelog has nothing that is not yet released; nothing is changed then
 */
export async function makeRelease(root: string, step: Step, today: string): Promise<string> {
  const git = async (...words: string[]) => (await run('git', words, root)).trim()
  const read = (file: string) => readFile(join(root, file), 'utf8')
  if ((await git('status', '--porcelain')) !== '') throw new Error('the tree is not clean: commit or stash first')

  const { version: current } = JSON.parse(await read('package.json')) as { version: string }
  const version = nextVersion(current, step)
  if ((await git('tag', '--list', `v${version}`)) !== '') throw new Error(`there is a tag v${version} already`)
  const written = new Map<string, string>()
  for (const [file, pattern, places] of PLACES)
    written.set(file, replaceVersion(file, await read(file), { pattern, places, version }))
  written.set('CHANGELOG.md', dateChangelog(await read('CHANGELOG.md'), `${version}, ${today}`))
  const previous = await read('migrations/previous-releases')

  for (const [file, text] of written) await writeFile(join(root, file), text)
  await git('commit', '--quiet', '--message', `release: ${version}`, '--', ...written.keys())
  await git('tag', '--annotate', `v${version}`, '--message', `Hearth ${version}`)
  const commit = await git('rev-parse', 'HEAD')
  await writeFile(join(root, 'migrations/previous-releases'), withRelease(previous, commit))
  await git('commit', '--quiet', '--message', `release: upgrade and go back from what follows ${version}`, '--all')
  return version
}

interface Replacement {
  readonly pattern: RegExp
  readonly places: number
  readonly version: string
}

function replaceVersion(file: string, text: string, { pattern, places, version }: Replacement): string {
  // In package-lock.json, every library has a version of its own: ours come first.
  let left = places
  const replaced = text.replace(pattern, (found, kept: string) => (left-- > 0 ? kept + version : found))
  if (left > 0) throw new Error(`${file} names the version in fewer places than it should`)
  return replaced
}

/** @throws Error if the first section is of a release that was made, or empty */
export function dateChangelog(text: string, title: string): string {
  const first = text.split(/^(?=## )/m).find((section) => section.startsWith('## ')) ?? ''
  const [heading = '', ...lines] = first.split('\n')
  if (!UNRELEASED.test(heading) || lines.every((line) => line.trim() === ''))
    throw new Error(
      'CHANGELOG.md: the first section is to be "## Not yet released", and to say what changes for operators',
    )
  return text.replace(UNRELEASED, `## ${title}`)
}

function withRelease(text: string, commit: string): string {
  const lines = text.trimEnd().split('\n')
  const older = lines.filter((line) => !line.startsWith('#'))
  return `${[...lines.filter((line) => line.startsWith('#')), commit, ...older.slice(0, KEPT_RELEASES - 1)].join('\n')}\n`
}
