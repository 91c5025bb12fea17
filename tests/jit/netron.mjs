// Opens archives as Netron does: node netron.mjs FOLDER_OF_NETRON FILE... prints a line of JSON for each: the operators of
// its graph and the sizes of the tensors among their inputs.
import fs from "node:fs";
import path from "node:path";
import url from "node:url";

const [folder, ...files] = process.argv.slice(2);
const load = (name) => import(url.pathToFileURL(path.join(folder, name)).href);
const view = await load("view.js");
const base = await load("base.js");

const errors = [];
const note = (error) => errors.push(error.message);
const host = {
  document: {},
  window: {},
  type: "Test",
  version: "",
  environment: () => null,
  require: (name) => load(`${name.replace("./", "")}.js`),
  asset: async (name) => fs.readFileSync(path.join(folder, name), "utf-8"),
  exception: note,
  error: note,
  event() {},
};

for (const file of files) {
  const stream = new base.BinaryStream(new Uint8Array(fs.readFileSync(file)));
  const context = { ...host, identifier: path.basename(file), stream, tags: new Map() };
  const model = await new view.ModelFactoryService(host).open(context);
  const operators = [];
  const tensors = [];
  const visit = (graph) => {
    for (const node of graph.nodes) {
      operators.push(node.type.name ?? node.type.identifier);
      for (const input of node.inputs) {
        for (const value of Array.isArray(input.value) ? input.value : []) {
          if (value?.initializer) tensors.push(String(value.initializer.type));
        }
      }
      for (const block of node.blocks ?? []) visit(block.value);
    }
  };
  model.modules.forEach(visit);
  console.log(JSON.stringify({ format: model.format, operators, tensors, errors }));
}
