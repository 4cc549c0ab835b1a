// Bundles AG-UI's client for the page of examples/12-frontend, with the licences of what is in it: node bundle.mjs. With
// --check it writes nothing, and fails if what is there differs.
import fs from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'

const page = '../../../examples/12-frontend/page/'
const made = await build({
  stdin: { contents: "export { HttpAgent } from 'agui-1.0.0'", resolveDir: '.' },
  bundle: true, minify: true, format: 'esm', target: 'es2022', legalComments: 'none', write: false, metafile: true,
})
const packages = [...new Set(Object.keys(made.metafile.inputs).map((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0]).filter(Boolean))].sort()
const licences = packages.map((folder) => {
  const { name, version, license } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const file = fs.readdirSync(folder).find((f) => /^licen[cs]e/i.test(f))
  return `${name} ${version}, ${license}\n\n${file ? fs.readFileSync(path.join(folder, file), 'utf8').trim() : 'The package has no file with its licence.'}\n`
})
const files = { 'agui.js': made.outputFiles[0].text, 'agui.licences.txt': licences.join(`\n${'-'.repeat(72)}\n\n`) }
for (const [name, text] of Object.entries(files)) {
  if (!process.argv.includes('--check')) fs.writeFileSync(page + name, text)
  else if (fs.readFileSync(page + name, 'utf8') !== text) {
    console.error(`${name} is not what bundle.mjs makes: run node bundle.mjs in internal/test/frontend`)
    process.exitCode = 1
  }
}
