import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT } from './support/project.ts'

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'docs/ARCHITECTURE.md',
  'docs/administration.md',
  'docs/roadmap.md',
  'docs/operations.md',
]

test.each(PAGES)('%s names only files that are there', (page) => {
  const text = readFileSync(join(PROJECT_ROOT, page), 'utf8')
  const paths = [...text.matchAll(/`((?:src|test|docs|bench|config|migrations|scripts)\/[\w./-]*)`/g)].map(
    ([, path]) => path!,
  )
  const links = [...text.matchAll(/\]\(([^):#]+)\)/g)].map(([, link]) => join(dirname(page), link!))
  expect([...paths, ...links].filter((path) => !existsSync(join(PROJECT_ROOT, path)))).toEqual([])
})

test("every command in the README's code blocks is a script of package.json or the built program", () => {
  const { scripts } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { scripts: object }
  const readme = readFileSync(join(PROJECT_ROOT, 'README.md'), 'utf8')
  const used = [...readme.matchAll(/npm (?:run )?([a-z:]+)/g)].map(([, name]) => name!).filter((name) => name !== 'ci')
  expect(used.length).toBeGreaterThan(2)
  expect(used.filter((name) => !(name in scripts))).toEqual([])
})
