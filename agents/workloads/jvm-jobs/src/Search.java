import java.io.IOException;
import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** A short job with a search index in memory: it indexes documents of random words, and prints what queries find. */
public final class Search {
    private static final int DOCUMENTS = 6_000;
    private static final int WORDS = 60;
    private static final int QUERIES = 400;

    public static void main(String[] arguments) throws IOException {
        Random random = new Random(1);
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
            try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
                for (int number = 0; number < DOCUMENTS; number++) {
                    StringBuilder text = new StringBuilder();
                    for (int place = 0; place < WORDS; place++) {
                        text.append(word(random)).append(' ');
                    }
                    Document document = new Document();
                    document.add(new TextField("text", text.toString(), Field.Store.NO));
                    document.add(new StoredField("number", number));
                    writer.addDocument(document);
                }
            }
            try (DirectoryReader reader = DirectoryReader.open(directory)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                for (int query = 0; query < QUERIES; query++) {
                    BooleanQuery both = new BooleanQuery.Builder()
                            .add(new TermQuery(new Term("text", word(random))), BooleanClause.Occur.MUST)
                            .add(new TermQuery(new Term("text", word(random))), BooleanClause.Occur.SHOULD)
                            .build();
                    System.out.println(searcher.count(both) + " " + searcher.search(both, 10).scoreDocs.length);
                }
            }
        }
    }

    /** Return a word; few are frequent, and most are rare. */
    private static String word(Random random) {
        return "word" + (int) Math.pow(20_000, random.nextDouble());
    }
}
