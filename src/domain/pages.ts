import { hash } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { ProtocolError } from '../core/errors.ts'
import { type PageFrame, type PageTemplate, readPageFrame, readPageTemplate } from '../core/page-template.ts'
import type { TemplateValue, TemplateValues } from '../core/template.ts'
import { type ErrorWords, readErrorWords } from '../core/templates/error-words.ts'
import { loadTemplates, OWN_TEMPLATES } from '../outbound/template-files.ts'
import { COMMON_VALUES, kindOf, PAGES, type PageName, type PageValue } from './page-rules.ts'
import { brandOf } from './public-address.ts'

export type PageValues<Name extends PageName> = { readonly [value in PageValue<Name>]?: TemplateValue | undefined }

export interface PageLook {
  /** The user's languages, most wanted first. */
  readonly languages: readonly string[]
  /** The language of the page's content, if it comes from elsewhere. */
  readonly language?: string | undefined
  /** The error of the last attempt, for a form that is shown again. */
  readonly problem?: ProtocolError | undefined
  /** A script that the page runs. */
  readonly script?: string | undefined
}

export interface RenderedPage {
  readonly html: string
  /** Sources of its style sheets, for a Content-Security-Policy. */
  readonly styles: readonly string[]
}

/** Web pages, from the built-in templates or the operator's own. */
export interface Pages {
  render<Name extends PageName>(name: Name, values: PageValues<Name>, look: PageLook): RenderedPage
  readonly languages: readonly string[]
}

interface Frame extends PageFrame {
  readonly sources: readonly string[]
}

export const FRAME = 'frame.html'
/** What pages say of errors. */
export const ERRORS = 'errors.txt'
const NAMES = Object.keys(PAGES) as PageName[]

/** Names a style or a script by its hash, as a source for a Content-Security-Policy. */
export function sourceOf(text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`
}

function readerOf(name: PageName): (source: string, language: string) => PageTemplate {
  const kind = kindOf(name)
  const rules = { ...kind, values: [...COMMON_VALUES, ...kind.values] }
  return (source, language) => readPageTemplate(source, rules, language)
}

function readFrame(source: string): Frame {
  const frame = readPageFrame(source)
  return { ...frame, sources: frame.styles.map(sourceOf) }
}

/** An error in words, and by its code if the page has its own words for it. */
function problemValues(name: PageName, problem: ProtocolError | undefined, inWords: ErrorWords): TemplateValues {
  if (problem === undefined) return {}
  const code = kindOf(name).problems?.find((each) => each === problem.errcode)
  const message = inWords(problem.message, problem.errcode)
  return { problem: message, [code === undefined ? 'other_problem' : code.toLowerCase()]: message }
}

/** Reads our own pages, and those of the operator in their place. @throws Error that names file and line */
export async function loadPages(config: Pick<Config, 'identity' | 'server_name'>): Promise<Pages> {
  const { templates_dir: directory } = config.identity
  const readers = Object.fromEntries(NAMES.map((name) => [name, readerOf(name)]))
  const directories = directory === undefined ? [OWN_TEMPLATES] : [OWN_TEMPLATES, directory]
  const pages = await loadTemplates(readers, directories)
  const frames = await loadTemplates({ [FRAME]: readFrame }, directories)
  const errors = await loadTemplates({ [ERRORS]: readErrorWords }, directories)
  const common = { brand: brandOf(config), server_name: config.server_name }

  return {
    languages: pages.languages,
    render(name, values, { languages, language, problem, script }) {
      const given = Object.entries<TemplateValue | undefined>(values).map(([key, value]) => [key, value ?? ''])
      const words = pages.find(
        name,
        undefined,
        languages,
      )({
        ...common,
        ...Object.fromEntries(given),
        ...problemValues(name, problem, errors.find(ERRORS, undefined, languages)),
      })
      const frame = frames.find(FRAME, undefined, [words.language])
      const run = script === undefined ? '' : `\n<script>${script}</script>`
      return {
        html: frame.render({
          ...{ ...common, ...words },
          language: language ?? words.language,
          content: words.content + run,
        }),
        styles: frame.sources,
      }
    },
  }
}
