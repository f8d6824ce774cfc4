import { Badge } from '../parts/badge.tsx'
import { Marked } from '../parts/marked.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { language, t } from '../words.ts'

interface Setting {
  readonly key: string
  readonly value?: string
  readonly isDefault: boolean
  readonly description: string
}

export function Configuration({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const configuration = useData<{ settings: Setting[] }>('/_hearth/admin/v1/configuration')
  const { search = '', all } = query
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['configuration'], { ...query, ...changes }), isReplacing)
  const wanted = ({ key, description, isDefault }: Setting) =>
    search === '' ? all === 'yes' || !isDefault : `${key} ${description}`.toLowerCase().includes(search.toLowerCase())
  return (
    <Page
      title={t('Configuration')}
      words={t(
        'What is in force, without secrets. It is changed in the configuration file, and most of it at the next start.',
      )}
    >
      <div class="bar">
        <Search
          label={t('Search in all options')}
          value={search}
          search={(text) => change({ search: text || undefined }, true)}
        />
        <label class="choice">
          <input
            type="checkbox"
            checked={all === 'yes'}
            onChange={(event) => change({ all: event.currentTarget.checked ? 'yes' : undefined })}
          />
          <span>{t('also what is as it comes')}</span>
        </label>
      </div>
      {language !== 'en' && <p class="soft">{t('What the options mean is told in English.')}</p>}
      <Shown of={configuration}>
        {({ settings }) => (
          <Table
            label={t('Options')}
            rows={settings.filter(wanted)}
            keyOf={(row) => row.key}
            empty={t('Nothing differs from how it comes.')}
            columns={[
              {
                title: t('Option'),
                isHeading: true,
                cell: ({ key, isDefault }) => (
                  <>
                    <code>{broken(key)}</code> {!isDefault && <Badge tone="warn">{t('set')}</Badge>}
                  </>
                ),
              },
              { title: t('Value'), cell: ({ value }) => (value === undefined ? '–' : <code>{value}</code>) },
              {
                title: t('Meaning'),
                cell: ({ description }) => (
                  <span class="soft" lang="en">
                    <Marked text={description} />
                  </span>
                ),
              },
            ]}
          />
        )}
      </Shown>
    </Page>
  )
}

/** A name that may be broken into lines where its words end. */
function broken(key: string) {
  return key.split(/(?<=[._])/).flatMap((word) => [word, <wbr key={word} />])
}
